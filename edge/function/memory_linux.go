package function

import (
	"fmt"
	"syscall"
)

// reserve returns addresses of zeros that take memory once they are touched.
func reserve(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of memory: %w", size, err)
	}
	return b, nil
}

// discard gives pages back, so that they are zero; false: they may not be.
func discard(b []byte) bool {
	return len(b) == 0 || syscall.Madvise(b, syscall.MADV_DONTNEED) == nil
}

func release(b []byte) {
	if len(b) > 0 {
		_ = syscall.Munmap(b) // of what reserve returned, which does not fail
	}
}
