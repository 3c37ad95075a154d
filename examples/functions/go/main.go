//go:build wasip1

// Command go is a function for the edge: it greets whom the query names, and says how long the body was.
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags=-s -o hello.wasm main.go
package main

import (
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Stderr.WriteString("read the body: " + err.Error() + "\n")
		os.Exit(1)
	}
	name, ok := strings.CutPrefix(os.Getenv("QUERY_STRING"), "name=")
	if !ok {
		name = "world"
	}
	os.Stdout.WriteString("Content-Type: text/plain; charset=utf-8\nCache-Control: max-age=60\n\n" +
		"Hello, " + name + "!\n" +
		os.Getenv("REQUEST_METHOD") + " " + os.Getenv("PATH_INFO") + " with " + strconv.Itoa(len(body)) + " bytes\n")
}
