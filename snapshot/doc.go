// Package snapshot is the immutable value that is published: built from zones with all its problems
// reported together, printed as canonical bytes under a content hash, parsed strictly, and compared by
// meaning.
//
// The format is written down in docs/spec/snapshot.md, enough for another language.
package snapshot
