package cookie

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func read(fields []string) string {
	var b strings.Builder
	for name, value := range All(fields) {
		b.WriteString("<" + name + "|" + value + ">")
	}
	return b.String()
}

func TestOneReading(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields []string
		read   string
		sent   string
	}{
		{"none", nil, "", ""},
		{"one", []string{"a=1"}, "<a|1>", "a=1"},
		{"several", []string{"a=1; b=2"}, "<a|1><b|2>", "a=1; b=2"},
		{"without the space between", []string{"a=1;b=2"}, "<a|1><b|2>", "a=1;b=2"},
		{"two of a name", []string{"a=1; a=2"}, "<a|1><a|2>", "a=1; a=2"},
		{"spaces before the sign", []string{"a =1; b  = 2"}, "<a|1><b|2>", "a=1; b=2"},
		{"a tab behind it", []string{"a=\t1"}, "<a|1>", "a=1"},
		{"spaces at the ends", []string{" a=1 ;  b=2 "}, "<a|1><b|2>", "a=1; b=2"},
		{"spaces within", []string{"a b=1 2; c=3"}, "<a b|1 2><c|3>", "a b=1 2; c=3"},
		{"quotes are the value's", []string{`a="1"; b=" 2 "`}, `<a|"1"><b|" 2 ">`, `a="1"; b=" 2 "`},
		{"a sign in the value", []string{"a=b=c; d==; e=f = g"}, "<a|b=c><d|=><e|f = g>", "a=b=c; d==; e=f = g"},
		{"empty values", []string{"a=; b="}, "<a|><b|>", "a=; b="},
		{"no sign", []string{"a; b=1"}, "<b|1>", "a; b=1"},
		{"no name", []string{"=1; b=2"}, "<b|2>", "=1; b=2"},
		{"several fields", []string{"a=1", "b=2; c=3"}, "<a|1><b|2><c|3>", "a=1; b=2; c=3"},
		{"several fields, one empty", []string{"a=1", "", "b=2"}, "<a|1><b|2>", "a=1; b=2"},
		{"nothing but separators", []string{" ;; "}, "", ""},
		{"a space of another kind is the name's", []string{"\u00a0a=1"}, "<\u00a0a|1>", "\u00a0a=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(tt.fields); got != tt.read {
				t.Errorf("read as %s, want %s", got, tt.read)
			}
			sent := Normalize(tt.fields)
			if strings.Join(sent, "|") != tt.sent || len(sent) > 1 {
				t.Errorf("sent on as %q, want %q", sent, tt.sent)
			}
		})
	}
	if v, found := Get([]string{"a = 1; a=2"}, "a"); !found || v != "1" {
		t.Errorf("the first of a name is %q, %v", v, found)
	}
	if v, found := Get([]string{"a=1"}, "b"); found {
		t.Errorf("a cookie that is not there is %q", v)
	}
}

// FuzzNormalize: what is sent on reads as what came, by this package and by another reader, and is its own normal form.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"a=1; b=2", "a =\t1 ;;b", " = ", "a= =", "a=1\nb = 2", "a=1;\t b=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields := strings.Split(text, "\n")
		sent := Normalize(fields)
		if got, want := read(sent), read(fields); got != want {
			t.Fatalf("%q is sent on as %q, which reads as %s and not as %s", fields, sent, got, want)
		}
		if again := Normalize(sent); !slices.Equal(again, sent) {
			t.Fatalf("%q is sent on as %q, and that as %q", fields, sent, again)
		}
		for _, pair := range strings.Split(sent[0], ";") {
			name, value, found := strings.Cut(strings.TrimPrefix(pair, " "), "=")
			if found && (name != trim(name) || value != trim(value)) {
				t.Fatalf("%q is sent on as %q, in which %q may be read in two ways", fields, sent, pair)
			}
		}
		for _, c := range (&http.Request{Header: http.Header{"Cookie": sent}}).Cookies() {
			if v, found := Get(sent, c.Name); c.Value != "" && (!found || c.Name != trim(c.Name)) {
				t.Fatalf("%q: net/http reads a cookie %q, here it is %q, %v", sent, c.Name, v, found)
			}
		}
	})
}
