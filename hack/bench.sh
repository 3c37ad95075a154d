#!/usr/bin/env bash
# Measures and prints one table: what a platform of 1,000 to 100,000 zones costs to build, seal, verify, compile
# and change, and what the processes answer a second. dnsperf and wrk measure DNS and HTTP when they are installed.
# BENCH selects packages, as in BENCH=./edge make bench.
set -euo pipefail
cd "$(dirname "$0")/.."

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
measure() { # measure PACKAGE PATTERN BENCHTIME
	case " ${BENCH:-$1} " in *" $1 "*) ;; *) return 0 ;; esac
	echo "measuring $1" >&2
	go test -run '^$' -bench "$2" -benchtime "$3" -timeout 60m "$1" | sed -n "s|^Benchmark|$1 |p" >>"$lines"
}

measure ./snapshot 'Build|Parse' 3x
measure ./seal . 3x
measure ./edge 'Compile' 3x
measure ./edge 'Resident' 1x
measure ./edge/dns . 200000x
measure ./edge/rules . 200000x
measure ./api . 200000x
processes=
for tool in 'dnsperf DNS' 'wrk Proxy' 'wrk Poll204'; do
	if command -v "${tool% *}" >/dev/null; then
		processes+="${processes:+|}${tool#* }"
	else
		echo "not measured, ${tool% *} is not installed: ${tool#* }" >&2
	fi
done
processes+="${processes:+|}Fleet|Coordinated"
measure ./internal/e2e "$processes" 1x

awk '
function time(ns) {
	if (ns >= 1e9) return sprintf("%.2f s", ns / 1e9)
	if (ns >= 1e6) return sprintf("%.2f ms", ns / 1e6)
	if (ns >= 1e3) return sprintf("%.2f µs", ns / 1e3)
	return sprintf("%.0f ns", ns)
}
BEGIN { printf "%-14s %-44s %12s %12s  %s\n", "package", "benchmark", "time", "allocated", "" }
{
	t = m = rest = ""
	for (i = 4; i < NF; i += 2) {
		unit = $(i + 1)
		if (unit == "ns/op") t = $i > 0 ? time($i) : ""
		else if (unit == "B/op") m = sprintf("%.2f MB", $i / 1e6)
		else if (unit != "allocs/op") rest = rest sprintf("%.6g %s  ", $i, unit)
	}
	sub(/-[0-9]+$/, "", $2)
	printf "%-14s %-44s %12s %12s  %s\n", substr($1, 3), $2, t, m, rest
}' "$lines"
