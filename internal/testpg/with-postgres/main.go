// Command with-postgres runs a command with a private PostgreSQL cluster, which tests find by
// GUARDYN_TEST_POSTGRES_URL, and ends with the command's exit code.
package main

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/internal/withserver"
)

func main() {
	withserver.Main(withserver.Server{
		Name: "with-postgres", Env: testpg.EnvURL, Timeout: 2 * time.Minute,
		Start: func(ctx context.Context) (string, func() error, error) {
			cluster, err := testpg.Start(ctx, testpg.Options{})
			if err != nil {
				return "", nil, err
			}
			return cluster.URL("postgres"), cluster.Stop, nil
		},
	})
}
