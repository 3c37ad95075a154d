package control

import (
	"strings"
	"testing"
)

func TestCredentialsForgetWhatMayBeOutOfDate(t *testing.T) {
	var c credentials
	hash := hashSecret(newSecret())
	_, era, known := c.find(hash)
	if known {
		t.Fatal("known before it was remembered")
	}
	c.remember(hash, credential{principal: Principal{NodeID: "n"}}, era)
	if v, _, known := c.find(hash); !known || v.principal.NodeID != "n" {
		t.Fatal("not remembered")
	}
	c.keep(0)
	if _, _, known := c.find(hash); !known {
		t.Error("forgotten although the directory is the same")
	}
	c.keep(1)
	_, era, known = c.find(hash)
	if known {
		t.Error("remembered although the directory changed")
	}

	// Read from the store, then revoked and forgotten, and only then remembered: must not come back.
	c.drop()
	c.remember(hash, credential{}, era)
	if _, _, known := c.find(hash); known {
		t.Error("remembered from before the change")
	}
}

func TestSecrets(t *testing.T) {
	a, b := newSecret(), newSecret()
	if a == b || len(a) != secretLen || !strings.HasPrefix(a, "gdn_") {
		t.Errorf("secrets %q and %q", a, b)
	}
	if hashSecret(a) == hashSecret(b) {
		t.Error("one hash for two secrets")
	}
}

func TestRoles(t *testing.T) {
	member := func(r Role) Principal { return Principal{UserID: "u", Workspace: "w", Role: r} }
	rows := []struct {
		name string
		p    Principal
		asks Role
		want error
	}{
		{"viewer reads", member(RoleViewer), RoleViewer, nil},
		{"viewer edits", member(RoleViewer), RoleEditor, ErrForbidden},
		{"editor edits", member(RoleEditor), RoleEditor, nil},
		{"editor administers", member(RoleEditor), RoleAdmin, ErrForbidden},
		{"admin administers", member(RoleAdmin), RoleAdmin, nil},
		{"no role", member(""), RoleViewer, ErrNoRoute},
		{"unknown role", member("owner"), RoleViewer, ErrNoRoute},
		{"operator without a role", Principal{UserID: "u", Operator: true, Workspace: "w"}, RoleViewer, ErrNoRoute},
		{"node", Principal{NodeID: "n", Workspace: "w", Role: RoleAdmin}, RoleViewer, ErrNoRoute},
		{"nobody", Principal{}, RoleViewer, ErrNoRoute},
	}
	for _, r := range rows {
		if got := r.p.may(r.asks); got != r.want {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
}
