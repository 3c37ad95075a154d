// Package archtest holds the tests of the whole tree: which way imports point, and what no file may hold.
package archtest
