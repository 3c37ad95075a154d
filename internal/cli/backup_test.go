package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/cli"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// runAlone runs one command against a database and nothing else.
func runAlone(t *testing.T, database string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), args, cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: []string{"GUARDYN_DATABASE_URL=" + database, "PATH=" + os.Getenv("PATH")},
	})
	return out.String(), errs.String(), code
}

// plane is a control plane with a client of its operator.
type plane struct {
	*host.Control
	*api.Client
	token string
}

func startPlane(t *testing.T, database string, key seal.SigningKey, token string) plane {
	t.Helper()
	c, err := host.StartControl(t.Context(), host.ControlConfig{DatabaseURL: database, Migrate: true, SigningKey: key, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if token == "" {
		made, err := control.Bootstrap(t.Context(), c.Store(), time.Now(), "op@example.com", "Acme")
		if err != nil {
			t.Fatal(err)
		}
		token = made.Token.Secret
	}
	client, err := api.NewClient("http://"+c.Addr(), token, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Whoami(t.Context()); err != nil {
		t.Fatal(err)
	}
	return plane{c, client, token}
}

// A restored control plane is the one that was backed up: same history, same hashes, same tokens, and the
// artefact that nodes hold, byte for byte.
func TestBackupRestoresTheControlPlane(t *testing.T) {
	for name, database := range map[string]func() string{
		"SQLite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db") },
		"Postgres": func() string { return testpg.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			key, err := seal.GenerateSigningKey()
			if err != nil {
				t.Fatal(err)
			}
			url := database()
			p := startPlane(t, url, key, "")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, err = p.CreateZone(t.Context(), api.NewZone{Name: "example.com"})
			must(err)
			for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
				_, err = p.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "www", Type: "A", Content: ip})
				must(err)
				_, err = p.Apply(t.Context(), api.ApplyRequest{Message: ip, AcceptDisruption: true})
				must(err)
			}
			_, _, err = p.PutList(t.Context(), "example.com", "saved-not-published", zone.List{Kind: zone.ListIP}, api.WriteOptions{})
			must(err)
			plan, err := p.Plan(t.Context(), api.PlanOptions{})
			must(err)
			history, err := p.History(t.Context(), api.PageOptions{})
			must(err)
			sealed, err := p.Store().Sealed(t.Context(), 2)
			must(err)

			file := filepath.Join(t.TempDir(), "backup")
			out, errs, code := runAlone(t, url, "backup", file)
			if code != 0 || !strings.HasPrefix(out, file+": ") {
				t.Fatalf("backup: %d\n%s%s", code, out, errs)
			}
			if _, errs, code := runAlone(t, url, "backup", file); code != 1 || !strings.Contains(errs, "hint: name a new file") {
				t.Errorf("backup onto a file: %d\n%s", code, errs)
			}
			if _, errs, code := runAlone(t, url, "restore", file); code != 1 || !strings.Contains(errs, "is not empty; nothing was restored\nhint: restore into a new database") {
				t.Errorf("restore onto the original: %d\n%s", code, errs)
			}
			secret, err := os.ReadFile(file)
			must(err)
			if bytes.Contains(secret, []byte(key.SecretHex())) || bytes.Contains(secret, []byte(p.token)) {
				t.Error("the backup holds a secret")
			}

			other := database()
			if out, errs, code := runAlone(t, other, "restore", file); code != 0 || out != "restored backup\n" {
				t.Fatalf("restore: %d\n%s%s", code, out, errs)
			}
			r := startPlane(t, other, key, p.token)
			planAfter, err := r.Plan(t.Context(), api.PlanOptions{})
			must(err)
			if planAfter.ContentHash != plan.ContentHash {
				t.Errorf("the rows build to %s, they built to %s", planAfter.ContentHash, plan.ContentHash)
			}
			historyAfter, err := r.History(t.Context(), api.PageOptions{})
			must(err)
			if len(historyAfter.Items) != 2 || len(history.Items) != 2 {
				t.Fatalf("history %+v", historyAfter)
			}
			for i := range history.Items {
				if a, b := historyAfter.Items[i], history.Items[i]; a.ContentHash != b.ContentHash || a.Version != b.Version || !a.ActivatedAt.Equal(b.ActivatedAt) {
					t.Errorf("history: %+v, was %+v", a, b)
				}
			}
			sealedAfter, err := r.Store().Sealed(t.Context(), 2)
			must(err)
			if !bytes.Equal(sealedAfter.Payload, sealed.Payload) || sealedAfter.ContentHash != sealed.ContentHash {
				t.Error("the artefact is another one")
			}
			// Versions go on where they were.
			applied, err := r.Apply(t.Context(), api.ApplyRequest{Reseal: true})
			must(err)
			if applied.Version != 3 || applied.Generation != 3 {
				t.Errorf("the next apply is version %d, generation %d", applied.Version, applied.Generation)
			}
		})
	}
}

func TestBackupWithoutPostgresTools(t *testing.T) {
	url := testpg.URL(t)
	if _, errs, code := runAlone(t, url, "migrate"); code != 0 {
		t.Fatal(errs)
	}
	t.Setenv("PATH", t.TempDir())
	_, errs, code := runAlone(t, url, "backup", filepath.Join(t.TempDir(), "backup"))
	if code != 1 || !strings.Contains(errs, "error: pg_dump is not installed") || !strings.Contains(errs, "hint: apt-get install postgresql-client") {
		t.Errorf("%d\n%s", code, errs)
	}
}
