//go:build wasip1

// Command go is a function for the edge: it greets, and says what it was asked.
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags=-s -o hello.wasm .
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
)

func main() {
	query, err := url.ParseQuery(os.Getenv("QUERY_STRING"))
	if err != nil {
		fmt.Print("Status: 400\nContent-Type: text/plain\n\nthe query is malformed\n")
		return
	}
	name := query.Get("name")
	if name == "" {
		name = "world"
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the body:", err)
		os.Exit(1)
	}
	fmt.Print("Content-Type: text/plain; charset=utf-8\nCache-Control: max-age=60\n\n")
	fmt.Printf("Hello, %s!\n", name)
	fmt.Printf("%s %s from %s, %d bytes\n", os.Getenv("REQUEST_METHOD"), os.Getenv("PATH_INFO"), os.Getenv("REMOTE_ADDR"), len(body))
}
