package zone

import (
	"errors"
	"fmt"
)

// ObjectError is one thing that is malformed in one object of a zone. [Zone.Normalize] joins them.
type ObjectError struct {
	// Object as people name it: "record www A", "pool main", "rule 3 of custom", "settings".
	Object string
	Err    error
}

func (e *ObjectError) Error() string { return e.Object + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ObjectError) Unwrap() error { return e.Err }

// maxProblems bounds how many problems of one collection are told; a line says how many more there are.
const maxProblems = 100

// problems collects what is wrong with an object, one error each.
type problems struct {
	errs []error
	more int
}

// add takes err apart when it is joined of several; nil adds nothing.
func (p *problems) add(err error) {
	switch e := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			p.add(one)
		}
	default:
		if len(p.errs) < maxProblems {
			p.errs = append(p.errs, err)
		} else {
			p.more++
		}
	}
}

func (p *problems) addf(format string, args ...any) { p.add(fmt.Errorf(format, args...)) }

// in adds what is wrong with a part, under its name.
func (p *problems) in(part string, err error) {
	var inner problems
	inner.add(err)
	for _, one := range inner.errs {
		p.add(fmt.Errorf("%s: %w", part, one))
	}
	p.more += inner.more
}

// object adds what is wrong with an object of a zone.
func (p *problems) object(name string, err error) {
	if err == nil {
		return
	}
	var inner problems
	inner.add(err)
	for _, one := range inner.errs {
		p.add(&ObjectError{name, one})
	}
	p.more += inner.more
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs[:len(p.errs):len(p.errs)], fmt.Errorf("and %d more problems", p.more))...)
	}
	return errors.Join(p.errs...)
}
