package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// A world is small and gone in a moment: collecting less often halves the time that a million of them take.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
