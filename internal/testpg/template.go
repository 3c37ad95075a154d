package testpg

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// Template is a database of which tests get copies: what it takes long to prepare is prepared once in a process. It stays
// until its cluster ends. Only packages that have Main may use one.
type Template struct {
	prepare func(ctx context.Context, url string) error
	mu      sync.Mutex
	name    string // empty until it is prepared
}

// NewTemplate returns a template that prepare fills when the first copy is asked for; prepare leaves no connection open.
func NewTemplate(prepare func(ctx context.Context, url string) error) *Template {
	return &Template{prepare: prepare}
}

// URL returns the URL of a new copy that is dropped when the test ends.
func (m *Template) URL(t testing.TB) string {
	t.Helper()
	return create(t, m.prepared(t))
}

func (m *Template) prepared(t testing.TB) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name != "" {
		return m.name
	}
	server := os.Getenv(EnvURL)
	if server == "" {
		t.Fatal("there is no PostgreSQL cluster for the package: testpg.Main has started none")
	}
	name := "guardyn_template_" + strings.ToLower(rand.Text())
	execute(t, t.Context(), server, `CREATE DATABASE `+name)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s does not parse: %v", EnvURL, err)
	}
	u.Path = "/" + name
	if err := m.prepare(t.Context(), u.String()); err != nil {
		t.Fatalf("prepare a template: %v", err)
	}
	m.name = name
	return name
}
