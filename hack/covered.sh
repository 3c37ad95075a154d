#!/bin/sh
# Fails, with their lines, if the protocol's pure code has statements that no test of package barrier reaches.
set -eu
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT
go test -coverprofile="$profile" ./barrier >/dev/null || { echo "the tests of ./barrier fail"; exit 1; }
pure='(authority|check|decide|errors|member|note|rollout|step|transition_[a-z]+)'
[ "$(grep -cE "/barrier/$pure\.go:" "$profile")" -gt 300 ] || { echo "$0: the profile does not show package barrier"; exit 1; }
missed=$(grep -E "/barrier/$pure\.go:.* 0\$" "$profile" | cut -d' ' -f1 || true)
[ -z "$missed" ] || { echo "statements of the protocol that no test reaches:"; echo "$missed"; exit 1; }
