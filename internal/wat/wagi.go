package wat

import (
	"fmt"
	"strings"
)

const wagiImports = `
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
`

// $write sends length bytes at from to standard output. It uses the memory below 16.
const wagiWrite = `
  (func $write (param $from i32) (param $length i32)
    i32.const 0 local.get $from i32.store
    i32.const 4 local.get $length i32.store
    i32.const 1 i32.const 0 i32.const 1 i32.const 8 call $fd_write drop)
`

// WAGI assembles a function that answers requests: the fields of a module that exports _start and may call the functions of WASI
// $fd_write, $fd_read, $environ_get, $environ_sizes_get, $poll_oneoff, $proc_exit, $random_get and $clock_time_get, and
// $write (param $from i32) (param $length i32).
func WAGI(fields string) ([]byte, error) {
	return Assemble("(module " + wagiImports + fields + wagiWrite + ")")
}

// Answer is a function that writes a text and ends with a status.
func Answer(text string, status int) ([]byte, error) {
	var data strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&data, "\\%02x", text[i])
	}
	return WAGI(fmt.Sprintf(`(memory %d) (data (i32.const 64) "%s")
		(func (export "_start") i32.const 64 i32.const %d call $write i32.const %d call $proc_exit)`, 1+len(text)>>16+1, &data, len(text), status))
}

// Echo is a function that answers with its environment, each variable ended by a zero byte, another zero byte, and the request's body.
func Echo() ([]byte, error) {
	return WAGI(`(memory 6) (data (i32.const 512) "Content-Type: text/plain\n\n") (data (i32.const 24) "\00\00\04\00\00\00\01\00")
		(func (export "_start") (local $n i32)
			i32.const 512 i32.const 26 call $write
			i32.const 16 i32.const 20 call $environ_sizes_get drop
			i32.const 1024 i32.const 8192 call $environ_get drop
			i32.const 8192 i32.const 20 i32.load call $write
			i32.const 600 i32.const 1 call $write
			block $end loop $more
				i32.const 0 i32.const 24 i32.const 1 i32.const 32 call $fd_read br_if $end
				i32.const 32 i32.load local.tee $n i32.eqz br_if $end
				i32.const 262144 local.get $n call $write
				br $more
			end end)`)
}
