// Package cache decides by RFC 9111 what a shared cache stores and serves, and keeps it in bounded memory. It knows of no server:
// answers come in as status, fields and octets, and go out as an [Object].
package cache
