package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// run runs a command line in an empty world.
func run(environ []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(context.Background(), args, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ})
	return code, out.String(), errs.String()
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "gdn needs a command"},
		{"unknown command", []string{"aply"}, `unknown command "aply" for gdn`},
		{"unknown command, hint", []string{"aply"}, "did you mean gdn apply?"},
		{"group without command", []string{"zone"}, "gdn zone needs a command"},
		{"unknown in a group", []string{"zone", "creat", "a"}, "did you mean gdn zone create?"},
		{"unknown flag", []string{"plan", "--jsn"}, "unknown flag: --jsn"},
		{"argument too many", []string{"plan", "now"}, `unexpected argument "now"`},
		{"argument too few", []string{"record", "add", "a.example", "www", "A"}, "missing argument"},
		{"ttl", []string{"record", "add", "a.example", "www", "A", "192.0.2.1", "--ttl", "-1"}, "want auto, or seconds"},
		{"settings without value", []string{"settings", "set", "a.example", "trace_sampling"}, "want KEY=VALUE"},
		{"settings twice", []string{"settings", "set", "a.example", "hsts=1s", "hsts=2s"}, "each key once"},
		{"purge of nothing", []string{"purge", "a.example"}, "say what to purge, by one of --url, --prefix, --tag and --all"},
		{"purge of two kinds", []string{"purge", "a.example", "--all", "--tag", "x"}, "say what to purge, by one of"},
		{"purge of no zone", []string{"purge", "--all"}, "missing argument"},
		{"role", []string{"user", "grant", "a@example.com", "w", "king"}, "want viewer, editor, admin or none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _, stderr := run(nil, tt.args...)
			if code != 2 {
				t.Errorf("exit code %d, want 2\n%s", code, stderr)
			}
			if !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "\nhint: ") {
				t.Errorf("printed %q, want %q and a hint", stderr, tt.want)
			}
		})
	}
}

func TestUnknownEnvironment(t *testing.T) {
	code, _, stderr := run([]string{"GUARDYN_TOKNE=x", "GUARDYN_API_URL=http://127.0.0.1:1"}, "version")
	if code != 1 || !strings.Contains(stderr, "unknown environment variable GUARDYN_TOKNE") {
		t.Errorf("exit code %d, printed %q", code, stderr)
	}
	for _, name := range knownEnviron() {
		if code, _, stderr := run([]string{name + "=x"}, "version"); code != 0 {
			t.Errorf("%s is refused: %s", name, stderr)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	code, _, stderr := run([]string{"GUARDYN_API_URL=http://127.0.0.1:1"}, "plan")
	if code != 1 || !strings.Contains(stderr, "http://127.0.0.1:1") || !strings.Contains(stderr, "is the control plane running") {
		t.Errorf("exit code %d, printed %q", code, stderr)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := run(nil, "completion", shell)
		if code != 0 || !strings.Contains(stdout, "gdn") {
			t.Errorf("%s: exit code %d, %d bytes, %s", shell, code, len(stdout), stderr)
		}
	}
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	code, stdout, _ := run(nil, "--help")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, verb := range strings.Fields("serve edge dev migrate version completion keys zone record rules list pool balancer cache settings plan apply history node workspace user token status") {
		if !strings.Contains(stdout, "\n  "+verb+" ") {
			t.Errorf("gdn --help does not list %s", verb)
		}
	}
}
