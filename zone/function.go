package zone

// Function is a WebAssembly module (WASI preview 1) that answers requests.
type Function struct {
	// Module is the binary, base64 (RFC 4648 §4) in JSON.
	Module []byte `json:"module,format:base64"`
	// Memory, Timeout and Output bound one call; zero means the plan's ceiling.
	Memory  Size     `json:"memory,omitzero"`
	Timeout Duration `json:"timeout,omitzero"`
	Output  Size     `json:"output,omitzero"`
	// Environment adds variables that the module sees, at most 64.
	Environment map[string]string `json:"environment,omitempty"`
}
