#!/usr/bin/env bash
# What make demo-bridge runs: two brokers and a message bridge of three members on this machine, a change that all of them take over, one
# that one of them cannot run, so that all take it back, and one that must not roll. It stays until Ctrl-C; with CHECK set it asserts every
# answer and ends. Usage: examples/demo-bridge.sh PATH-OF-GDN
# shellcheck source=examples/walk.sh
. "$(dirname "$0")/walk.sh"

say 'Starting two brokers, plant and cloud, and three members of a bridge'
go build -o "$data/broker" ./examples/broker
# Ports that are free now: what is restarted must find its own again, so the kernel cannot choose them anew each time.
ports=()
while [ ${#ports[@]} -lt 5 ]; do
	port=$((20000 + RANDOM % 10000))
	if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then ports+=("$port"); fi
done
plant=127.0.0.1:${ports[0]} cloud=127.0.0.1:${ports[1]}
mkfifo "$data/messages" "$data/arrivals"
"$data/broker" -plant "$plant" -cloud "$cloud" -deny 'gdn-cloud-node-c=orders/#' <"$data/messages" >"$data/arrivals" 2>"$data/broker.log" &
pids+=($!)
exec 3>"$data/messages" 4<"$data/arrivals"
message() { # message LINE: publishes it at plant, and prints what arrives at cloud
	echo "plant> $1"
	echo "$1" >&3
	IFS= read -r -t 20 answer <&4 || answer='nothing'
	printf 'cloud< %s\n' "$answer"
}

document() { # document VERSION CLIENT-ID FILTER [ROUTE]
	cat <<TEXT
version: $1
bridge:
  deployment_mode: clustered
  shutdown_timeout: 10s
  drain_timeout: 5s
  cluster: {rollout: coordinated, members: [node-a, node-b, node-c], confirm_window: 10s, soak: 2s}
sessions:
  - {id: plant, kind: mqtt, url: "mqtt://$plant", client_id: $2, clean_start: false, session_expiry: 1h, exclusive: true}
  - {id: cloud, kind: mqtt, url: "mqtt://$cloud", client_id: "gdn-cloud-{member}"}
routes:
  - {id: temps, from: {session: plant, topic: "plant/+/temp"}, filter: "$3", to: {session: cloud, topic: "t/{1}"}}
TEXT
	if [ -n "${4:-}" ]; then echo "  - $4"; fi
}
document 1 gdn-plant 'payload.c > 0.0' >"$data/first.yaml"
cat "$data/first.yaml"

# The members agree through one store, and each keeps the document in a file of its own.
export GUARDYN_BRIDGE_ROLLOUT_STORE=sqlite:$data/rollouts.db GUARDYN_BRIDGE_LEASE_STORE=sqlite:$data/leases.db GUARDYN_BRIDGE_TOKEN=demo
run gdn bridge migrate
urls=()
for i in 0 1 2; do
	member=node-$(printf '%b' "\\x$((61 + i))") listen=127.0.0.1:${ports[2 + i]}
	urls+=("http://$listen")
	mkdir "$data/$member"
	# Not by the function: what is started must be gdn itself, so that it is what is told to stop.
	"$program" bridge --member-id "$member" --source "file:$data/$member/bridge.yaml" --initial "$data/first.yaml" \
		--state-dir "$data/$member/state" --listen "$listen" >"$data/$member.log" 2>&1 &
	pids+=($!)
done
export GUARDYN_BRIDGE_URL=${urls[0]}
everywhere() { # everywhere PATTERN: every member's status comes to match it
	local url
	for url in "${urls[@]}"; do
		until_seen "$1" gdn bridge status --url "$url"
	done
}
if ! everywhere 'active, ready.*version 1 .*plant *mqtt *(connected|standby) .* yes.*temps .* yes' >/dev/null; then
	cat "$data"/*.log >&2
	exit 1
fi
run gdn bridge status
want 'active, ready'
want 'version 1 (window)'
message 'plant/press/temp {"c": 61.5}'
want 't/press {"c": 61.5}'

say 'A change: put to all members, tried by all, and kept by all'
document 1 gdn-plant 'payload.c > 50.0' >"$data/warmer.yaml"
run gdn bridge plan "$data/warmer.yaml"
want 'live-safe'
want '2 go on'
run gdn bridge put "$data/warmer.yaml"
want 'saved version 2'
for url in "${urls[@]}"; do
	until_seen 'version 2, confirmed' gdn bridge status --url "$url"
	want 'version 2, confirmed'
done
echo 'plant> plant/press/temp {"c": 40}' # which the filter keeps back
echo 'plant/press/temp {"c": 40}' >&3
message 'plant/press/temp {"c": 70}'
want 't/press {"c": 70}'

say 'A change that the broker does not let one member run: taken back by all'
document 2 gdn-plant 'payload.c > 50.0' '{id: orders, from: {session: cloud, topic: "orders/#", share: bridge}, to: {session: cloud, topic: "accepted/{1}"}}' >"$data/orders.yaml"
run gdn bridge put "$data/orders.yaml"
want 'saved version 3'
for url in "${urls[@]}"; do
	until_seen 'runs +version 2 .*version 3, reverted' gdn bridge status --url "$url"
	want 'version 3, reverted'
done
until_seen 'save it again' gdn bridge status
want 'node-c'
want 'orders/# is not granted'
message 'plant/press/temp {"c": 71}'
want 't/press {"c": 71}'

say 'A change that must not roll, for it would leave behind what the broker keeps'
document 3 gdn-works 'payload.c > 50.0' >"$data/renamed.yaml"
try gdn bridge put "$data/renamed.yaml"
want_code 1
want 'replacement-required'
want 'sessions.plant.client_id'

checked
say 'What to try next, in another terminal'
cat <<TEXT
  export GUARDYN_BRIDGE_URL=${urls[1]} GUARDYN_BRIDGE_TOKEN=demo
  bin/gdn bridge status
  curl -s ${urls[1]}/deephealth
  docs/guide/bridge.md, docs/operations/bridge.md

Ctrl-C stops everything and removes $data.
TEXT
wait "${pids[0]}"
