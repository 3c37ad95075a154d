// Command exprref prints the page of the language of rules, for make docs.
package main

import (
	"fmt"
	"os"

	"github.com/guardyn-edge/guardyn/internal/expr"
)

func main() {
	if err := expr.WriteReference(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
