// Package rules evaluates a zone's rulesets against requests: expressions compiled ahead, lists as sets whose
// lookup cost does not follow their size, and no I/O.
//
// The language is that of internal/expr. A rule whose expression errs on a request does not match it, and
// the request counts the error.
package rules
