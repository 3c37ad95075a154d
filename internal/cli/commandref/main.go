// Command commandref prints the reference of gdn's commands, for make docs.
package main

import (
	"fmt"
	"os"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

func main() {
	if err := cli.WriteReference(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
