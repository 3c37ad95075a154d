// Package seal makes a snapshot provable: Ed25519 keys and their ids, the sealed artefact, the signed
// activation, and the ordered verification that alone makes a Verified snapshot.
//
// The formats are written down in docs/spec/snapshot.md, enough for another language.
package seal
