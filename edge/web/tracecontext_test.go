package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	someTrace  = "0af7651916cd43dd8448eb211c80319c"
	someParent = "b7ad6b7169203331"
	someFrom   = "00-" + someTrace + "-" + someParent + "-01"
)

func TestTraceparent(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []string
		want   string // as it is printed again; empty: refused
	}{
		{"sampled", []string{someFrom}, someFrom},
		{"not sampled", []string{"00-" + someTrace + "-" + someParent + "-00"}, "00-" + someTrace + "-" + someParent + "-00"},
		{"random, of level 2", []string{"00-" + someTrace + "-" + someParent + "-03"}, "00-" + someTrace + "-" + someParent + "-03"},
		{"flags that are not known", []string{"00-" + someTrace + "-" + someParent + "-ff"}, "00-" + someTrace + "-" + someParent + "-03"},
		{"a later version", []string{"cc-" + someTrace + "-" + someParent + "-01"}, someFrom},
		{"a later version with more", []string{"cc-" + someTrace + "-" + someParent + "-01-what-the-future"}, someFrom},
		{"a later version with an empty rest", []string{"cc-" + someTrace + "-" + someParent + "-01-"}, someFrom},
		{"a later version with more of the flags", []string{"cc-" + someTrace + "-" + someParent + "-01.what"}, ""},
		{"version 00 with more", []string{someFrom + "-what-the-future"}, ""},
		{"version 00 with a dash", []string{someFrom + "-"}, ""},
		{"version ff", []string{"ff-" + someTrace + "-" + someParent + "-01"}, ""},
		{"a version of one digit", []string{"0-" + someTrace + "-" + someParent + "-01"}, ""},
		{"a version of three", []string{"000-" + someTrace + "-" + someParent + "-01"}, ""},
		{"a version that is no number", []string{".0-" + someTrace + "-" + someParent + "-01"}, ""},
		{"a trace id of zeros", []string{"00-" + strings.Repeat("0", 32) + "-" + someParent + "-01"}, ""},
		{"a trace id with another letter", []string{"00-." + someTrace[1:] + "-" + someParent + "-01"}, ""},
		{"a trace id in capitals", []string{"00-" + strings.ToUpper(someTrace) + "-" + someParent + "-01"}, ""},
		{"a trace id that is short", []string{"00-" + someTrace[1:] + "-" + someParent + "-01"}, ""},
		{"a trace id that is long", []string{"00-" + someTrace + "0-" + someParent + "-01"}, ""},
		{"a parent of zeros", []string{"00-" + someTrace + "-0000000000000000-01"}, ""},
		{"a parent with another letter", []string{"00-" + someTrace + "-." + someParent[1:] + "-01"}, ""},
		{"a parent in capitals", []string{"00-" + someTrace + "-" + strings.ToUpper(someParent) + "-01"}, ""},
		{"a parent that is short", []string{"00-" + someTrace + "-" + someParent[1:] + "-01"}, ""},
		{"flags that are no number", []string{"00-" + someTrace + "-" + someParent + "-.0"}, ""},
		{"flags of one digit", []string{"00-" + someTrace + "-" + someParent + "-1"}, ""},
		{"flags of three", []string{"00-" + someTrace + "-" + someParent + "-001"}, ""},
		{"no flags", []string{"00-" + someTrace + "-" + someParent}, ""},
		{"no dashes", []string{"00_" + someTrace + "_" + someParent + "_01"}, ""},
		{"another dash", []string{"00-" + someTrace + "_" + someParent + "-01"}, ""},
		{"twice", []string{someFrom, someFrom}, ""},
		{"twice in one", []string{someFrom + "," + someFrom}, ""},
		{"nothing", []string{""}, ""},
		{"none", nil, ""},
	} {
		got := ""
		c, ok := parseTraceparent(row.values)
		if ok {
			got = c.String()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestTracestate(t *testing.T) {
	var many, long []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("k%d=v", i))
	}
	for i := range 10 {
		long = append(long, fmt.Sprintf("k%d=%s", i, strings.Repeat("v", 80)))
	}
	big := "big=" + strings.Repeat("v", 200)
	for _, row := range []struct {
		name         string
		values, want []string
	}{
		{"one", []string{"rojo=00f067aa0ba902b7"}, []string{"rojo=00f067aa0ba902b7"}},
		{"several lines", []string{"a=1,b=2", "c=3"}, []string{"a=1,b=2", "c=3"}},
		{"white space, and nothing between commas", []string{"a=1 ,\t b=2,,"}, []string{"a=1 ,\t b=2,,"}},
		{"tenants", []string{"fw529a3039@dt=FfkJ_1"}, []string{"fw529a3039@dt=FfkJ_1"}},
		{"every sign of a key", []string{"a_-*/@9=1"}, []string{"a_-*/@9=1"}},
		{"a key that begins with a digit", []string{"9a=1"}, []string{"9a=1"}},
		{"the longest key", []string{strings.Repeat("k", 256) + "=1"}, []string{strings.Repeat("k", 256) + "=1"}},
		{"32 members", []string{strings.Join(many[:32], ",")}, []string{strings.Join(many[:32], ",")}},
		{"33 members", []string{strings.Join(many, ",")}, nil},
		{"a key that is longer", []string{strings.Repeat("k", 257) + "=1"}, nil},
		{"a value that is too long", []string{"a=" + strings.Repeat("v", 257)}, nil},
		{"a key in capitals", []string{"FOO=1"}, nil},
		{"a key with another sign", []string{"foo.bar=1"}, nil},
		{"a key that begins with a sign", []string{"@foo=1"}, nil},
		{"white space in a key", []string{"foo =1"}, nil},
		{"a value with an equals sign", []string{"foo=1=2"}, nil},
		{"a value with a control character", []string{"foo=b\tar"}, nil},
		{"a value that is not ASCII", []string{"foo=ü"}, nil},
		{"no value", []string{"foo="}, nil},
		{"no key", []string{"=1"}, nil},
		{"no equals sign", []string{"foo"}, nil},
		{"one of several is malformed", []string{"foo=1,bar"}, nil},
		{"empty", []string{"", " , "}, nil},
		{"too long: the last go", []string{strings.Join(long, ",")}, []string{strings.Join(long[:6], ",")}},
		{"too long: long ones go before", []string{"a=1," + big + "," + strings.Join(long[:4], ",")}, []string{"a=1," + strings.Join(long[:4], ",")}},
		{"too long: of the long ones the last", []string{"a=1," + big + "," + big + "x," + big + "y,z=1"}, []string{"a=1," + big + "," + big + "x,z=1"}},
	} {
		if got := keptTracestate(slices.Clone(row.values)); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		if got := strings.Join(row.want, ","); len(got) > maxTracestate {
			t.Errorf("%s: %d octets are passed on", row.name, len(got))
		}
	}
}

// What is passed on is what a strict reader takes, and reading it again changes nothing.
func FuzzTraceContext(f *testing.F) {
	f.Add(someFrom, "a=1, b=2", "c=3")
	f.Add("00-"+strings.ToUpper(someTrace)+"-"+someParent+"-01", "a", "")
	f.Add("cc-"+someTrace+"-"+someParent+"-01-x", "a="+strings.Repeat("v", 300), "b="+strings.Repeat("v", 250))
	f.Fuzz(func(t *testing.T, parent, state, more string) {
		h := http.Header{traceparentField: {parent}, tracestateField: {state, more}}
		c, ok := readTraceContext(h)
		if ok {
			if again, ok := parseTraceparent([]string{c.String()}); !ok || again.trace != c.trace || again.parent != c.parent {
				t.Errorf("%q is printed as %q", parent, c)
			}
		} else if len(h) > 0 {
			t.Errorf("%q: passed on %v", parent, h)
		}
		kept := h[tracestateField]
		if size := len(strings.Join(kept, ",")); size > maxTracestate {
			t.Errorf("%d octets of tracestate", size)
		}
		readTraceContext(h)
		if !slices.Equal(h[tracestateField], kept) {
			t.Errorf("%q becomes %q", kept, h[tracestateField])
		}
	})
}
