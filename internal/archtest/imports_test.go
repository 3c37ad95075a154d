package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/guardyn-edge/guardyn"

// room says what the packages of one directory may import of this module, directly. A package belongs to
// the room with the longest path that is its own path or a parent of it.
type room struct {
	path    string
	imports []string
}

// leaves are small packages under internal that every room may use.
var leaves = []string{"internal/expr", "internal/metering", "internal/originguard", "internal/durable", "internal/sqlconn", "internal/failpoint", "internal/strictyaml", "internal/fieldname"}

var rooms = []room{
	{"internal/expr", nil},
	{"internal/metering", nil},
	{"internal/fieldname", nil},
	{"internal/wat", nil},
	{"internal/originguard", nil},
	{"internal/durable", nil},
	{"internal/failpoint", []string{"internal/testport"}},
	{"internal/sqlconn", nil},
	{"internal/strictyaml", nil},
	{"internal/withserver", nil},
	{"internal/testport", nil},
	{"internal/telemetry", nil},
	{"internal/testpg", nil},
	{"internal/testpg/with-postgres", []string{"internal/testpg", "internal/withserver"}},
	{"internal/archtest", nil},
	{"barrier", nil},
	{"barrier/barriertest", []string{"barrier"}},
	{"barrier/memory", []string{"barrier"}},
	{"barrier/sqlstore", []string{"barrier", "barrier/barriertest", "internal/testpg"}},
	{"barrier/dynamo", []string{"barrier", "barrier/barriertest", "internal/testdynamo"}},
	{"internal/testdynamo", []string{"internal/testport"}},
	{"internal/dynamoconn", nil},
	{"internal/testdynamo/with-dynamo", []string{"internal/testdynamo", "internal/withserver"}},
	{"barrier/remote", []string{"barrier"}},
	{"barrier/metrics", []string{"barrier"}},
	{"barrier/slotfile", []string{"barrier"}},
	{"barrier/sim", []string{"barrier"}},
	{"zone", nil},
	{"snapshot", []string{"zone"}},
	{"seal", []string{"snapshot", "zone"}},
	{"internal/nodeproto", []string{"seal"}},
	{"control", []string{"snapshot", "seal", "barrier", "zone", "internal/nodeproto"}},
	{"store", []string{"store", "control", "barrier", "snapshot", "seal", "zone", "internal/nodeproto", "internal/testpg"}},
	{"api", []string{"control", "barrier", "barrier/remote", "snapshot", "seal", "zone", "internal/nodeproto"}},
	{"node", []string{"barrier", "seal", "snapshot", "zone", "internal/nodeproto"}},
	{"edge", []string{"snapshot", "zone", "edge/cache", "edge/rules", "edge/ratelimit", "edge/pool", "edge/rrset", "edge/function"}},
	{"edge/function", []string{"zone"}},
	{"edge/cookie", nil},
	{"edge/rules", []string{"zone", "edge/cookie", "edge/ratelimit"}},
	{"edge/cache", []string{"zone"}},
	{"edge/ratelimit", nil},
	{"edge/perzone", nil},
	{"edge/http1", nil},
	{"edge/pool", []string{"zone"}},
	{"edge/rrset", []string{"zone"}},
	{"edge/health", []string{"edge", "edge/pool", "zone"}},
	{"edge/probe", []string{"edge", "edge/health", "edge/pool", "snapshot", "zone"}},
	{"edge/dns", []string{"edge", "edge/perzone", "edge/rules", "edge/pool", "edge/rrset", "zone"}},
	{"edge/web", []string{"edge", "edge/cache", "edge/cookie", "edge/function", "edge/http1", "edge/perzone", "edge/rules", "edge/ratelimit", "edge/pool", "zone"}},
	{"bridge", []string{"barrier"}},
	{"bridge/topic", nil},
	{"bridge/expression", nil},
	{"bridge/document", []string{"bridge/topic", "bridge/expression", "barrier"}},
	{"bridge/host", []string{"bridge", "bridge/document", "bridge/source", "barrier"}},
	{"bridge/admin", []string{"bridge", "bridge/document", "bridge/source", "bridge/host", "barrier", "barrier/metrics"}},
	{"bridge/session", []string{"bridge", "bridge/document", "bridge/topic"}},
	{"bridge/mqtt", []string{"bridge", "bridge/session", "bridge/document", "bridge/topic"}},
	{"bridge/nats", []string{"bridge", "bridge/session", "bridge/document", "bridge/topic"}},
	{"bridge/webhook", []string{"bridge", "bridge/session", "bridge/document", "bridge/topic"}},
	{"bridge/route", []string{"bridge", "bridge/session", "bridge/document", "bridge/topic", "bridge/expression"}},
	{"bridge/lease", []string{"barrier"}},
	{"bridge/run", []string{
		"bridge", "bridge/session", "bridge/mqtt", "bridge/nats", "bridge/webhook", "bridge/route", "bridge/lease", "bridge/document", "bridge/topic", "barrier",
	}},
	{"internal/testmosquitto", []string{"internal/testport"}},
	{"bridge/source", []string{"bridge/document"}},
	{"bridge/source/sourcetest", []string{"bridge/source", "bridge/document"}},
	{"bridge/source/filesource", []string{"bridge/source", "bridge/document"}},
	{"bridge/source/sqlsource", []string{"bridge/source", "bridge/document"}},
	{"bridge/source/dynamosource", []string{"bridge/source", "bridge/document", "barrier/dynamo"}},
	{"internal/host", []string{
		"bridge", "bridge/admin", "bridge/document", "bridge/host", "bridge/source", "bridge/source/filesource", "bridge/source/sqlsource",
		"bridge/source/dynamosource", "barrier/dynamo", "barrier/memory", "barrier/slotfile", "internal/dynamoconn",
		"api", "node", "edge", "store", "control", "barrier", "barrier/metrics", "barrier/sqlstore", "barrier/remote",
		"snapshot", "seal", "zone", "internal/nodeproto", "internal/telemetry",
		"edge/dns", "edge/web", "edge/cache", "edge/function", "edge/perzone", "edge/rules", "edge/pool", "edge/probe", "edge/health",
	}},
	{"internal/cli", []string{
		"bridge", "bridge/admin", "bridge/document", "bridge/host", "bridge/run", "bridge/session",
		"internal/cli", "internal/host", "internal/sqlconn", "api", "node", "edge", "edge/cache", "edge/function", "edge/perzone", "edge/rules", "edge/web", "store", "control", "snapshot", "seal", "zone",
	}},
	{"internal/e2e", []string{"internal/cli", "internal/testport", "internal/host", "internal/testpg", "api", "seal", "snapshot", "zone", "internal/nodeproto"}},
	{"internal/peerbench", []string{"seal", "internal/wat"}},
	{"cmd", []string{"internal/cli"}},
	{"cmd/gdn", []string{"internal/cli"}},
	{"examples", nil},
}

// never holds what must not be reached, by whatever path.
var never = []struct{ from, to string }{
	{"edge", "seal"},
	{"edge", "node"},
	{"edge", "control"},
	{"edge/dns", "seal"},
	{"edge/web", "seal"},
	{"zone", "database/sql"},
	{"zone", "net/http"},
	{"snapshot", "database/sql"},
	{"snapshot", "net/http"},
	{"control", "database/sql"},
	{"node", "database/sql"},
	{"edge", "database/sql"},
	{"api", "database/sql"},
}

// only holds the libraries that are the business of one room.
var only = map[string][]string{
	"github.com/spf13/cobra":   {"internal/cli"},
	"github.com/coder":         {"internal/cli", "examples", "bridge/mqtt"},
	"github.com/jackc/pgx":     {"store", "barrier/sqlstore", "internal/sqlconn", "internal/testpg"},
	"github.com/aws":           {"barrier/dynamo", "bridge/source/dynamosource", "internal/testdynamo", "internal/dynamoconn"},
	"modernc.org/sqlite":       {"store", "barrier/sqlstore", "internal/sqlconn"},
	"github.com/pressly/goose": {"store", "barrier/sqlstore", "bridge/source/sqlsource"},
	"github.com/danielgtaylor": {"api"},
	"go.opentelemetry.io":      {"internal/telemetry"},
	"cel.dev/cel-go":           {"internal/expr", "edge/rules", "bridge/expression"},
	"github.com/tetratelabs":   {"snapshot", "zone", "edge/function"},
	"github.com/klauspost":     {"seal", "control"},
	"github.com/eclipse":       {"bridge/mqtt", "internal/testmosquitto", "internal/peerbench"},
	"github.com/nats-io":       {"bridge/nats"},
	"github.com/gaissmai/bart": {"edge"},
	"github.com/maypok86":      {"edge/cache"},
	"github.com/dunglas":       {"edge/cache"},
	"go.yaml.in/yaml":          {"internal/cli", "internal/strictyaml"},
	"github.com/rogpeppe":      {},
	"github.com/cockroachdb":   {"barrier/barriertest"},
	"pgregory.net/rapid":       {},
	"github.com/google/go-cmp": {},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func list(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"/...")
	cmd.Dir = top(t)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// own returns a package's path inside the module.
func own(importPath string) (string, bool) {
	rel, ok := strings.CutPrefix(importPath, module+"/")
	return rel, ok
}

func roomOf(rel string) *room {
	for p := rel; p != "."; p = path.Dir(p) {
		for i := range rooms {
			if rooms[i].path == p {
				return &rooms[i]
			}
		}
	}
	return nil
}

// violations judges packages: one line for each import that a rule forbids.
func violations(all []goPackage) []string {
	var bad []string
	for _, p := range all {
		rel, ok := own(p.ImportPath)
		if !ok {
			continue
		}
		r := roomOf(rel)
		if r == nil {
			bad = append(bad, fmt.Sprintf("%s belongs to no room: say in archtest what it may import", rel))
			continue
		}
		for _, imported := range p.Imports {
			if to, ok := own(imported); ok && !allowed(r, rel, to) {
				bad = append(bad, fmt.Sprintf("%s must not import %s", rel, to))
			}
			for library, users := range only {
				if strings.HasPrefix(imported, library) && !slices.ContainsFunc(users, func(u string) bool {
					return rel == u || strings.HasPrefix(rel, u+"/")
				}) && rel != "store/storetest" {
					bad = append(bad, fmt.Sprintf("%s must not import %s", rel, imported))
				}
			}
		}
		for _, n := range never {
			if n.from != rel {
				continue
			}
			for _, dep := range p.Deps {
				if to, ok := own(dep); dep == n.to || ok && to == n.to {
					bad = append(bad, fmt.Sprintf("%s must not depend on %s", rel, n.to))
				}
			}
		}
	}
	return bad
}

func allowed(r *room, from, to string) bool {
	if slices.Contains(leaves, to) && !slices.Contains(leaves, from) {
		return true
	}
	if strings.HasPrefix(to, r.path+"/") && r.path != "edge" {
		return true // a room's own inner packages
	}
	return slices.Contains(r.imports, to)
}

func TestImportsPointOneWay(t *testing.T) {
	for _, v := range violations(list(t)) {
		t.Error(v)
	}
}

func TestViolationsAreSeen(t *testing.T) {
	p := func(rel string, imports ...string) goPackage {
		return goPackage{ImportPath: module + "/" + rel, Imports: imports, Deps: imports}
	}
	tests := []struct {
		name string
		pkg  goPackage
		want bool
	}{
		{"zone imports a library", p("zone", "github.com/miekg/dns"), false},
		{"zone imports snapshot", p("zone", module+"/snapshot"), true},
		{"an adapter imports another", p("api", module+"/store"), true},
		{"edge/dns imports web", p("edge/dns", module+"/edge/web"), true},
		{"edge/dns imports the view", p("edge/dns", module+"/edge"), false},
		{"edge reaches seal", p("edge", module+"/seal"), true},
		{"control opens a database", p("control", "database/sql"), true},
		{"yaml in control", p("control", "go.yaml.in/yaml/v3"), true},
		{"store's suite", p("store/storetest", module+"/control"), false},
		{"a leaf imports a room", p("internal/durable", module+"/zone"), true},
		{"nobody's room", p("util"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := len(violations([]goPackage{tt.pkg})) > 0; got != tt.want {
				t.Errorf("violations = %q, want some: %v", violations([]goPackage{tt.pkg}), tt.want)
			}
		})
	}
}
