package remote_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// namedErrors reads barrier's source: the codes of its table, and how many Err variables it declares.
func namedErrors(t *testing.T) (codes []string, variables int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if strings.HasPrefix(name.Name, "Err") {
					variables++
				}
			}
		case *ast.CompositeLit:
			if len(n.Elts) != 2 {
				return true
			}
			code, ok := n.Elts[0].(*ast.BasicLit)
			if _, named := n.Elts[1].(*ast.Ident); ok && named {
				s, err := strconv.Unquote(code.Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, s)
			}
		}
		return true
	})
	return codes, variables
}

func TestEveryErrorHasAStatus(t *testing.T) {
	codes, variables := namedErrors(t)
	if len(codes) == 0 || len(codes) != variables {
		t.Fatalf("barrier declares %d errors, and its table names %d", variables, len(codes))
	}
	for _, code := range codes {
		if s := remote.Status(code); s < 400 || s > 499 || s == 401 || s == 403 {
			t.Errorf("%s has status %d", code, s)
		}
		if barrier.FromCode(code) == nil {
			t.Errorf("%s is no code", code)
		}
		if slices.Contains(remote.OwnCodes, code) {
			t.Errorf("%s is a code of the handler's own too", code)
		}
	}
	if remote.Codes() != len(codes) {
		t.Errorf("%d codes have a status, of %d", remote.Codes(), len(codes))
	}
}

// Every method tells every error as the port's.
func TestErrorsCrossTheWire(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	ctx := t.Context()
	codes, _ := namedErrors(t)
	for _, m := range methods {
		c := client(t, server.URL, m.who, remote.ClientOptions{})
		s.err = nil
		if err := m.call(ctx, c); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, code := range codes {
			want := barrier.FromCode(code)
			s.err = fmt.Errorf("store: %w: for a reason", want)
			err := m.call(ctx, c)
			if !errors.Is(err, want) || barrier.Code(err) != code {
				t.Errorf("%s: %q became %v", m.name, s.err, err)
			}
			var answer *remote.Error
			if !errors.As(err, &answer) || answer.Code != code || answer.Status != remote.Status(code) || answer.Detail != s.err.Error() {
				t.Errorf("%s: %s became %+v", m.name, code, answer)
			}
		}
	}
}

func TestDetailsCrossTheWire(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	ro := barrier.Rollout{
		Ref: ref, Digest: "sha256:ab", Version: 1<<64 - 1, Proposer: "Zoë \"<&>\" \x00", RosterRevision: 3, EpochSize: 4,
		Window: 90 * time.Second, Soak: 10 * time.Second, Grace: time.Second, EvidenceTTL: 5 * time.Millisecond,
		ProposedAt: at, Deadline: at.Add(time.Hour), State: barrier.Committed, CommittedAt: at.Add(time.Second),
		ConfirmDeadline: at.Add(time.Minute), DecidedAt: at.Add(time.Second), DecidedBy: "coordinator 3", Reason: "because",
	}
	for _, want := range []error{
		&barrier.OpenError{Rollout: ro},
		&barrier.DecidedError{Ref: ref, State: barrier.Aborted, Reason: "refused by a: disk\nfull"},
		&barrier.HeldError{Holder: "control-1"},
	} {
		s.err = fmt.Errorf("wrapped: %w", want)
		err := c.Abort(t.Context(), ref, barrier.ByClaim(1), "")
		got := reflect.New(reflect.TypeOf(want))
		if !errors.As(err, got.Interface()) {
			t.Errorf("%v became %v", want, err)
			continue
		}
		if !reflect.DeepEqual(got.Elem().Interface(), want) {
			t.Errorf("%#v became %#v", want, got.Elem().Interface())
		}
	}
	// Without its details an error is still what it is.
	for _, want := range []error{barrier.ErrOpen, barrier.ErrDecided, barrier.ErrHeld} {
		s.err = want
		var (
			open *barrier.OpenError
			done *barrier.DecidedError
			held *barrier.HeldError
		)
		err := c.Abort(t.Context(), ref, barrier.ByClaim(1), "")
		if !errors.Is(err, want) || errors.As(err, &open) || errors.As(err, &done) || errors.As(err, &held) {
			t.Errorf("%v became %v", want, err)
		}
	}
}

// What is none of the ports' errors says nothing, of itself neither.
func TestOtherErrorsAreNotTold(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	for _, m := range methods {
		c := client(t, server.URL, m.who, remote.ClientOptions{})
		for _, cause := range []error{
			errors.New("dial postgres://secret"), context.DeadlineExceeded, context.Canceled, remote.ErrForbidden, remote.ErrUnauthenticated,
		} {
			s.err = cause
			err := m.call(t.Context(), c)
			var answer *remote.Error
			if !errors.As(err, &answer) || answer.Status != 500 || answer.Code != "outcome_unknown" {
				t.Fatalf("%s: %v became %v", m.name, cause, err)
			}
			if errors.Unwrap(answer) != nil || strings.Contains(err.Error(), "secret") || errors.Is(err, cause) {
				t.Errorf("%s: %v became %v", m.name, cause, err)
			}
		}
	}
}

// A store's texts may be anything: the answer is of bounded size, and the error is still known.
func TestLongAndBrokenTexts(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	long := strings.Repeat("\x01", 1<<20)
	for _, cause := range []error{
		fmt.Errorf("%w: %s", barrier.ErrBarrier, long),
		fmt.Errorf("%w: %s", barrier.ErrBarrier, strings.Repeat("\xff", 1<<20)),
		fmt.Errorf("%w: %s", barrier.ErrBarrier, strings.Repeat("€", 1<<20)),
		&barrier.DecidedError{Ref: ref, State: barrier.Aborted, Reason: long},
		&barrier.HeldError{Holder: long + "\xff"},
		&barrier.OpenError{Rollout: barrier.Rollout{Ref: ref, Reason: strings.Repeat("\x01", barrier.MaxReasonBytes), Proposer: strings.Repeat("\x01", barrier.MaxNameBytes)}},
		&barrier.OpenError{Rollout: barrier.Rollout{Ref: ref, Reason: "\xff"}},
	} {
		s.err = cause
		if err := c.Commit(t.Context(), ref, 1); barrier.Code(err) != barrier.Code(cause) {
			t.Errorf("%.80q became %.200v", cause, err)
		}
	}
}
