package zone

import (
	"bytes"
	"strings"
)

// MaxModule is the most bytes of a function's module, whatever the plan says.
const MaxModule = Size(64 << 20)

// Function is a WebAssembly module (WASI preview 1) that answers requests.
type Function struct {
	// Module is the binary, base64 (RFC 4648 §4) in JSON.
	Module []byte `json:"module"`
	// Memory, Timeout and Output bound one call; zero means the plan's ceiling.
	Memory  Size     `json:"memory,omitzero"`
	Timeout Duration `json:"timeout,omitzero"`
	Output  Size     `json:"output,omitzero"`
	// Environment adds variables that the module sees, at most 64.
	Environment map[string]string `json:"environment,omitempty"`
}

// Normalize returns f in normal form, or all that is wrong with it, joined. Whether the module compiles is
// the build's to judge.
func (f Function) Normalize() (Function, error) {
	var bad problems
	switch {
	case len(f.Module) == 0:
		bad.addf("module is missing")
	case Size(len(f.Module)) > MaxModule:
		bad.addf("module has %d bytes, the most is %s", len(f.Module), MaxModule)
	case !bytes.HasPrefix(f.Module, []byte("\x00asm\x01\x00\x00\x00")):
		bad.addf("module is not a WebAssembly binary of version 1")
	}
	inRange(&bad, "memory", f.Memory, 64<<10, 4<<30, Size.String)
	inRange(&bad, "timeout", f.Timeout, 1e6, 60*second, Duration.String)
	inRange(&bad, "output", f.Output, 1, 1<<30, Size.String)
	if len(f.Environment) > 64 {
		bad.addf("environment has %d variables, the most is 64", len(f.Environment))
	}
	for _, name := range sortedKeys(f.Environment) {
		v := f.Environment[name]
		if !isVariable(name) {
			bad.addf("environment: %s is not a variable's name ([A-Za-z_][A-Za-z0-9_]*)", quote(name))
		}
		bad.in("environment", checkText(v, quote(name), 4096))
		if strings.IndexByte(v, 0) >= 0 {
			bad.addf("environment: %s holds a zero byte", quote(name))
		}
	}
	if len(f.Environment) == 0 {
		f.Environment = nil
	}
	if err := bad.err(); err != nil {
		return Function{}, err
	}
	return f, nil
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !('a' <= c && c <= 'z' || s[i] == '_' || i > 0 && digit(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= 256
}
