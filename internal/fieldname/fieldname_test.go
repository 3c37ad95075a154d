package fieldname

import "testing"

func TestWhoMaySet(t *testing.T) {
	for _, tt := range []struct {
		name, field       string
		inRequest, answer bool
	}{
		{"anybody's", "X-App", true, true},
		{"anybody's, with an underscore", "X_app", true, true},
		{"a client's address under another name", "Cf-Connecting-Ip", true, true},
		{"none", "", false, false},
		{"hop-by-hop", "Te", false, false},
		{"the body's length", "Content-Length", false, false},
		{"the body's type", "Content-Type", true, true},
		{"the body's type, as a variable", "Content_type", false, true},
		{"the host", "Host", false, false},
		{"the host, as a variable", "Host_", true, true},
		{"what counts loops", "Cdn-Loop", false, false},
		{"the node's own", "X-Guardyn-Zone", false, false},
		{"the node's own, as a variable", "X_guardyn.zone", false, true},
		{"whom a request is forwarded for", "X-Forwarded-For", false, true},
		{"whom it is forwarded for, as a variable", "X_forwarded_for", false, true},
		{"the client's address", "X-Real-Ip", false, true},
		{"the proxy to use", "Proxy", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := SettableInRequest(tt.field); got != tt.inRequest {
				t.Errorf("%s in a request: %v", tt.field, got)
			}
			if got := SettableInAnswer(tt.field); got != tt.answer {
				t.Errorf("%s in an answer: %v", tt.field, got)
			}
		})
	}
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"X-Host", "X-Host"},
		{"X_host", "X-Host"},
		{"True.client_ip", "True-Client-Ip"},
	} {
		if got := Read(tt.name); got != tt.want {
			t.Errorf("%s is read as %s, want %s", tt.name, got, tt.want)
		}
	}
	if !AddressClaim("True_client_ip") || AddressClaim("X-App") {
		t.Error("claims of the client's address are not told from others")
	}
}
