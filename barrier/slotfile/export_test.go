package slotfile

import "github.com/guardyn-edge/guardyn/internal/durable"

// AfterStep has f run behind each completed durable step.
func (s *Slots) AfterStep(f func(name string, step durable.Step) error) { s.dir.AfterStep(f) }

// Sealed returns a memory file with document in it, whatever that says.
func Sealed(document string) []byte {
	line := []byte(document + "\n")
	return append(line, checksum(line)+"\n"...)
}
