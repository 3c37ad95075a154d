// Package zone is the vocabulary of a configuration: zones and everything they hold, how each is
// parsed, its one normal form, and what makes it malformed by itself.
//
// Everything here is a plain value without I/O. A value that came out of a Parse function, or out of
// [Zone.Normalize], is in normal form: equal meanings are equal values and print the same bytes. How
// objects fit together (a rule naming a list that does not exist) is not judged here but by
// snapshot.Build.
package zone
