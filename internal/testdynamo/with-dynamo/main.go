// Command with-dynamo runs a command with a private DynamoDB Local, which tests find by
// GUARDYN_TEST_DYNAMO_URL, and ends with the command's exit code.
package main

import (
	"context"

	"github.com/guardyn-edge/guardyn/internal/testdynamo"
	"github.com/guardyn-edge/guardyn/internal/withserver"
)

func main() {
	withserver.Main(withserver.Server{
		Name: "with-dynamo", Env: testdynamo.EnvURL, Timeout: testdynamo.StartTimeout,
		Start: func(ctx context.Context) (string, func() error, error) {
			server, err := testdynamo.Start(ctx)
			if err != nil {
				return "", nil, err
			}
			return server.URL(), server.Stop, nil
		},
	})
}
