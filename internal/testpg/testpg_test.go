package testpg_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guardyn-edge/guardyn/internal/testpg"
)

func TestMain(m *testing.M) { testpg.Main(m) }

func TestURLIsAFreshDatabase(t *testing.T) {
	first, second := testpg.URL(t), testpg.URL(t)
	if first == second {
		t.Fatalf("twice the same database: %s", first)
	}
	for _, url := range []string{first, second} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `CREATE TABLE only_here (n integer)`); err != nil {
			t.Errorf("the database is not empty: %v", err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestDatabaseIsDroppedAtTheEnd(t *testing.T) {
	var url string
	t.Run("user", func(t *testing.T) { url = testpg.URL(t) })
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		conn.Close(t.Context())
		t.Fatalf("%s still stands", url)
	}
}

func TestClusterStops(t *testing.T) {
	c, err := testpg.Start(t.Context(), testpg.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	url := c.URL("postgres")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(errors.Join(err, c.Stop()))
	}
	var fsync string
	if err := conn.QueryRow(t.Context(), `SHOW fsync`).Scan(&fsync); err != nil || fsync != "on" {
		t.Errorf("fsync is %q, %v", fsync, err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the server answers after Stop")
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the server accepts connections after Stop")
	}
}

func TestWithPostgresPassesEnvironmentAndExitCode(t *testing.T) {
	command := filepath.Join(t.TempDir(), "with-postgres")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "./with-postgres")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) (string, int) {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), command, args...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, testpg.EnvURL+"=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("sh", "-c", `echo "$`+testpg.EnvURL+`"; exit 7`); code != 7 || !strings.HasPrefix(out, "postgres://") {
		t.Errorf("got code %d and %q, want 7 and a URL", code, out)
	}
	if out, code := run("--", "true"); code != 0 {
		t.Errorf("got code %d and %q, want 0", code, out)
	}
	if out, code := run(); code != 2 || !strings.Contains(out, "usage") {
		t.Errorf("got code %d and %q, want 2 and how to use it", code, out)
	}
}
