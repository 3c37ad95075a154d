// Package testpg gives tests real PostgreSQL databases on a private server that is started for them.
package testpg

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// EnvURL names the environment variable that holds a superuser's URL of a running private cluster. Tests
// then make their databases there instead of starting one.
const EnvURL = "GUARDYN_TEST_POSTGRES_URL"

// startTimeout bounds how long a cluster may take until it accepts connections.
const startTimeout = 2 * time.Minute

// Main runs a package's tests with one cluster for all of them, for TestMain:
//
//	func TestMain(m *testing.M) { testpg.Main(m) }
//
// A cluster that cannot be started fails those tests alone that ask for a database.
func Main(m *testing.M) {
	if os.Getenv(EnvURL) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		c, err := Start(ctx, Options{})
		cancel()
		if err == nil {
			defer func() {
				if err := c.Stop(); err != nil {
					fmt.Fprintln(os.Stderr, "stop postgres:", err)
				}
			}()
			if err := os.Setenv(EnvURL, c.URL("postgres")); err != nil {
				panic(err)
			}
		}
	}
	m.Run() // its code becomes the process's when TestMain returns
}

// URL returns the URL of a new, empty database that is dropped when the test ends. Without PostgreSQL the
// test fails: it is never skipped.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, "")
}

// create makes a database as URL does, a copy of template unless that is empty.
func create(t testing.TB, template string) string {
	t.Helper()
	server := os.Getenv(EnvURL)
	if server == "" {
		ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
		defer cancel()
		c, err := Start(ctx, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error("stop postgres:", err)
			}
		})
		server = c.URL("postgres")
	}
	name := "guardyn_test_" + strings.ToLower(rand.Text())
	statement := `CREATE DATABASE ` + name
	if template != "" {
		statement += ` TEMPLATE ` + template
	}
	execute(t, t.Context(), server, statement)
	t.Cleanup(func() {
		execute(t, context.WithoutCancel(t.Context()), server, `DROP DATABASE `+name+` WITH (FORCE)`)
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s does not parse: %v", EnvURL, err)
	}
	u.Path = "/" + name
	return u.String()
}

func execute(t testing.TB, ctx context.Context, server, statement string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect to the test cluster: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
