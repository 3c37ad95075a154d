#!/usr/bin/env bash
# What make demo runs: a control plane, two nodes and an origin on this machine, the example zone published
# to them, and a look at what they answer. It stays until Ctrl-C; with CHECK set it asserts every answer and
# ends. BARE asks with the program here even where dig and curl are installed.
# Usage: examples/demo.sh PATH-OF-GDN
set -euo pipefail
cd "$(dirname "$0")/.."
gdn=$(realpath "$1")
check=${CHECK:-}
# A variable left over from another fleet must not reach this one.
for name in $(compgen -e | grep '^GUARDYN_' || true); do unset "$name"; done

data=$(mktemp -d)
pid=
stop() {
	trap - EXIT INT TERM
	if [ -n "$pid" ]; then
		kill -TERM "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	rm -rf "$data"
}
trap stop EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
gdn() {
	local word line='$ gdn'
	for word in "$@"; do
		case $word in
		*[!A-Za-z0-9_./:=%@+-]*) line+=" '$word'" ;;
		*) line+=" $word" ;;
		esac
	done
	echo "$line"
	"$gdn" "$@" 2>&1
}

say 'Starting a control plane, two edge nodes and a demo origin'
any=127.0.0.1:0
"$gdn" dev --data "$data/fleet" --api $any --demo-origin $any \
	--node1-dns $any --node1-http $any --node1-admin $any \
	--node2-dns $any --node2-http $any --node2-admin $any >"$data/dev.log" 2>&1 &
pid=$!
until [ -e "$data/fleet/dev.env" ]; do
	if ! kill -0 "$pid" 2>/dev/null; then
		cat "$data/dev.log" >&2
		echo 'error: gdn dev did not start' >&2
		exit 1
	fi
	sleep 0.1
done
# shellcheck source=/dev/null
. "$data/fleet/dev.env"
sed -n '/^control plane/,/^$/p' "$data/dev.log"

# ask NODE NAME TYPE and fetch NODE HOST PATH print the command, then what the node answers.
installed() { [ -z "${BARE:-}" ] && command -v "$1" >/dev/null; }
probe() {
	[ -x "$data/probe" ] || go build -o "$data/probe" ./examples/probe
	"$data/probe" "$@"
}
ask() {
	local server=$1 name=$2 type=$3
	if installed dig; then
		echo "\$ dig @${server%:*} -p ${server##*:} +short $name $type"
		answer=$(dig "@${server%:*}" -p "${server##*:}" +short +timeout=5 "$name" "$type")
	else
		echo "\$ go run ./examples/probe dns $server $name $type"
		answer=$(probe dns "$server" "$name" "$type")
	fi
	printf '%s\n' "$answer"
}
fetch() {
	local server=$1 host=$2 path=$3
	if installed curl; then
		echo "\$ curl -H 'Host: $host' http://$server$path"
		answer=$(curl -sS --noproxy '*' --max-time 10 -H "Host: $host" -w '\n%{http_code}' "http://$server$path")
		answer="${answer##*$'\n'}"$'\n'"${answer%$'\n'*}"
	else
		echo "\$ go run ./examples/probe http $server $host $path"
		answer=$(probe http "$server" "$host" "$path")
	fi
	printf '%s\n' "$answer"
}
failed=0
want() { # want TEXT: the last answer has it
	[ -n "$check" ] || return 0
	case $answer in
	*"$1"*) echo "  ok: $1" ;;
	*) echo "  NOT OK: want $1"; failed=1 ;;
	esac
}
each_node() { # each_node FUNCTION
	say "$2: what node 1 answers"
	"$1" "$GUARDYN_NODE1_DNS" "$GUARDYN_NODE1_HTTP"
	say "$2: what node 2 answers"
	"$1" "$GUARDYN_NODE2_DNS" "$GUARDYN_NODE2_HTTP"
}

say 'Editing writes rows and changes nothing about what visitors get'
zone=amthalgroup.com
cat >"$data/demo.yaml" <<YAML
origins:
  - {name: demo, address: "$GUARDYN_DEMO_ORIGIN"}
YAML
gdn zone create $zone
gdn zone import $zone examples/amthalgroup.com.zone
gdn pool set $zone default "$data/demo.yaml"
gdn list set $zone office examples/office.yaml

say 'A plan is a difference of meaning'
gdn plan
say 'An apply publishes one signed snapshot'
gdn apply -m 'first zone' --wait

first() {
	ask "$1" $zone A
	want 192.0.2.10
	ask "$1" 2026._domainkey.$zone TXT
	want 'v=DKIM1; k=rsa; p='
	ask "$1" $zone TXT
	want 'says \"hello\"; and means it'
	fetch "$2" www.$zone /wp-login.php
	want 200
	want 'demo origin'
}
each_node first 'v1'

say 'Now a change that can interrupt traffic, beside some that cannot'
gdn record add $zone _dmarc TXT 'v=DMARC1; p=none'
gdn rules set $zone custom examples/rules.yaml
gdn settings set $zone trace_sampling=100%
gdn zone create lab.$zone
gdn plan
say 'It needs consent'
if gdn apply -m 'block wordpress scanners'; then
	echo 'error: a disruptive plan was applied without consent' >&2
	exit 1
fi
gdn apply -m 'block wordpress scanners' --accept-disruption --wait

second() {
	ask "$1" _dmarc.$zone TXT
	want 'v=DMARC1; p=none'
	fetch "$2" www.$zone /wp-login.php
	want 403
	fetch "$2" www.$zone /
	want 200
	want 'demo origin'
}
each_node second 'v2'
say 'The fleet'
gdn node list
gdn history

if [ -n "$check" ]; then
	say "$([ $failed = 0 ] && echo 'Every answer is right' || echo 'Some answer is wrong')"
	exit $failed
fi
say 'What to try next, in another terminal'
cat <<TEXT
  . $data/fleet/dev.env           # then bin/gdn speaks to this fleet
  bin/gdn record add $zone hello A 192.0.2.99 && bin/gdn plan && bin/gdn apply -m hello
  bin/gdn zone export $zone
  bin/gdn --help

Ctrl-C stops everything and removes $data.
TEXT
wait "$pid"
