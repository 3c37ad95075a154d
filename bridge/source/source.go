// Package source says where a bridge's document lives, and watches it.
package source

import (
	"context"
	"errors"
	"fmt"
)

// The named errors of the port. Any other error of Read is a read error, from which nothing follows; any other error of a write
// says nothing about whether it took effect: read again.
var (
	ErrMissing = errors.New("there is no document")                    // for certain
	ErrExists  = errors.New("there is a document already")             // CreateIfAbsent
	ErrVersion = errors.New("the document has another version by now") // SaveIfVersion; see VersionError
)

// VersionError is an ErrVersion that tells the version.
type VersionError struct{ Have uint64 }

func (e *VersionError) Error() string { return fmt.Sprintf("%v: %d", ErrVersion, e.Have) }

// Unwrap makes it an ErrVersion.
func (e *VersionError) Unwrap() error { return ErrVersion }

// Stored is a document as its home holds it.
type Stored struct {
	Body    []byte // valid or not
	Version uint64 // 0 when the body does not say, in a home that keeps none of its own
	// Lineage is another one when the document was deleted and created again; "" in a home that cannot tell.
	Lineage string
}

// Source is the home of one document. It is safe for concurrent use. Writes are durable and compared and set in one step when
// they return nil; they need a body in which document.VersionOf finds a version or none.
type Source interface {
	// Read returns what is there, no older than any write that ended before the call. ErrMissing only when it is certain that there is
	// no document: a directory, a database or a table that cannot be looked at is another error.
	Read(ctx context.Context) (Stored, error)

	// SaveIfVersion puts body, with its version changed to the next one, in place of the document if its version is the one given.
	// Errors: *VersionError, ErrMissing.
	SaveIfVersion(ctx context.Context, version uint64, body []byte) (Stored, error)

	// CreateIfAbsent puts body there, with its version changed to 1, if nothing is; whatever is there is left as it is, valid or
	// not: ErrExists.
	CreateIfAbsent(ctx context.Context, body []byte) (Stored, error)

	// Shared tells whether all members read this one home, so that none is ever behind.
	Shared() bool

	// String names the home for people, without secrets.
	String() string

	// Close gives up what it holds. Calls after it fail.
	Close() error
}
