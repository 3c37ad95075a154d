package cli_test

import (
	"fmt"
	"os"

	"github.com/guardyn-edge/guardyn/internal/wat"
)

// assemble is the program wat of scripts: wat FILE.wat FILE.wasm
func assemble() {
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		var code []byte
		if code, err = wat.Assemble(string(text)); err == nil {
			err = os.WriteFile(os.Args[2], code, 0o600)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
