// Package rrset holds one zone's DNS data compiled for answering: its names in the order of a tree, with
// what delegates or redirects them, and its RRsets in wire format.
package rrset
