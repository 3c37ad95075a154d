#!/usr/bin/env bash
# Measures this node beside the servers that people run in its place, in turns on this machine, and prints one table:
# processor time, requests/s and the 99th percentile of each, and the node's processor time over each peer's.
# ROUNDS=5 rounds, LENGTH=3s each; ONLY=dns|proxy|tls|rules|function|cache|bridge for one row; GDN=PATH measures a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

hack/need.sh mosquitto
[ "${ONLY:-}" = bridge ] || for program in nginx dnsperf wrk h2load knot nsd named haproxy varnishd; do
	hack/need.sh "$program"
done
# Peers that are written in Go are built once, into bin/.
build() { # build PROGRAM PACKAGE
	[ -x "bin/$1" ] && return
	echo "building $1, which takes a minute or two" >&2
	GOBIN="$PWD/bin" go install "$2"
}
[ "${ONLY:-}" = bridge ] || build caddy github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
[ "${ONLY:-}" = bridge ] || build coredns github.com/coredns/coredns@v1.15.0

gdn=${GDN:-bin/gdn}
[ -n "${GDN:-}" ] || go build -o bin/gdn ./cmd/gdn
exec go run ./internal/peerbench -gdn "$gdn" -bin bin -rounds "${ROUNDS:-5}" -length "${LENGTH:-3s}" -only "${ONLY:-}"
