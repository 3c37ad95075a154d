#!/usr/bin/env bash
# What make demo runs: gdn dev with a control plane, two nodes and two origins on this machine, the example zone published to them,
# and a walk through what nodes do. It stays until Ctrl-C; with CHECK set it asserts every answer and ends. It needs curl and dig.
# Usage: examples/demo.sh PATH-OF-GDN
# shellcheck source=examples/walk.sh
. "$(dirname "$0")/walk.sh"

say 'Starting a control plane, two edge nodes and two demo origins'
any=127.0.0.1:0
# Not by the function: what is started must be gdn itself, so that it is what is told to stop.
"$program" dev --data "$data/fleet" --api $any --demo-origin $any --demo-origin2 $any \
	--node1-dns $any --node1-http $any --node1-https $any --node1-admin $any \
	--node2-dns $any --node2-http $any --node2-https $any --node2-admin $any >"$data/dev.log" 2>&1 &
pids+=($!)
until [ -e "$data/fleet/dev.env" ]; do
	if ! kill -0 "${pids[0]}" 2>/dev/null; then
		cat "$data/dev.log" >&2
		echo 'error: gdn dev did not start' >&2
		exit 1
	fi
	sleep 0.1
done
# shellcheck source=/dev/null
. "$data/fleet/dev.env"
sed -n '/^control plane/,/^$/p' "$data/dev.log"
node1=$GUARDYN_NODE1_HTTP node2=$GUARDYN_NODE2_HTTP
zone=amthalgroup.com
www=www.$zone

say 'Editing writes rows and changes nothing about what visitors get'
run gdn zone create $zone
run gdn zone import $zone examples/$zone.zone
run cat "$data/fleet/pool.yaml"
run gdn pool set $zone web "$data/fleet/pool.yaml"
run gdn balancer set $zone $www examples/balancer.yaml
run gdn list set $zone office examples/office.yaml

say 'A plan is a difference of meaning, and an apply publishes one signed snapshot'
run gdn plan
run gdn apply -m 'first zone' --wait
want '2 nodes on version 1'

for dns in "$GUARDYN_NODE1_DNS" "$GUARDYN_NODE2_DNS"; do
	say "What the node at $dns answers"
	run dig "@${dns%:*}" -p "${dns##*:}" $zone A
	want 192.0.2.10
	run dig "@${dns%:*}" -p "${dns##*:}" $zone TXT
	want 'says \"hello\"; and means it'
	run dig "@${dns%:*}" -p "${dns##*:}" $www A
	want 127.0.0.1
done
say 'The balancer gives both origins requests, in turn'
for node in "$node1" "$node2"; do
	run curl -H "Host: $www" "http://$node/" "http://$node/"
	want 'Hello from demo origin 1.'
	want 'Hello from demo origin 2.'
done

say 'An origin that fails its checks gets none, on either node'
run curl -X POST "http://$GUARDYN_DEMO_ORIGIN2/demo/fail"
until_seen ' unhealthy on 2 ' gdn pool status $zone web
want 'unhealthy on 2 (node1, node2)'
for node in "$node1" "$node2"; do
	run curl -H "Host: $www" "http://$node/" "http://$node/"
	want 'Hello from demo origin 1.'
	want_not 'origin 2'
done
run curl -X POST "http://$GUARDYN_DEMO_ORIGIN2/demo/mend"
until_seen ' demo1 .* 2/2 .* demo2 .* 2/2 ' gdn pool status $zone web
want_not 'unhealthy'

say 'Rules: what they would do is asked before they are published'
run cat examples/rules.yaml
run gdn rules set $zone custom examples/rules.yaml
run gdn rules test $zone --request examples/request.yaml
want 'answered 403'
run gdn rules set $zone ratelimit examples/ratelimit.yaml
say 'A change that can interrupt traffic needs consent'
try gdn apply -m 'scanners, and guessing of passwords'
want_code 1
want 'Pass --accept-disruption to apply this.'
run gdn apply -m 'scanners, and guessing of passwords' --accept-disruption --wait
for node in "$node1" "$node2"; do
	run curl -o /dev/null -w '%{http_code}\n' -H "Host: $www" "http://$node/wp-login.php"
	want 403
done
say 'Five tries to sign in a minute'
run curl -o /dev/null -w '%{http_code} ' -X POST -H "Host: $www" "http://$node1/login?[1-5]"
want '200 200 200 200 200'
run curl -i -X POST -H "Host: $www" "http://$node1/login"
want 'HTTP/1.1 429 Too Many Requests'
want 'Retry-After: '

say 'HTTPS: the key is sealed before it leaves this machine, and the nodes alone can open it'
run gdn tls add $zone $www --cert "$data/fleet/demo.pem" --key "$data/fleet/demo.key"
run gdn settings set $zone always_https=on hsts=30d
run gdn apply -m 'https' --accept-disruption --wait
for https in "$GUARDYN_NODE1_HTTPS" "$GUARDYN_NODE2_HTTPS"; do
	run curl -i --cacert "$GUARDYN_DEMO_CA" --connect-to "::$https" "https://$www/"
	want 'HTTP/2 200'
	want 'strict-transport-security: max-age=2592000'
	want 'Hello from demo origin'
done
run curl -i -H "Host: $www" "http://$node1/shop?item=1"
want 'HTTP/1.1 308 Permanent Redirect'
want "Location: https://$www/shop?item=1"
try curl --cacert "$GUARDYN_DEMO_CA" --connect-to "::$GUARDYN_NODE1_HTTPS" "https://api.$zone/"
want 'unrecognized name'

say 'What an origin allows to be kept, a node keeps, until it is purged'
cached=(curl -i --cacert "$GUARDYN_DEMO_CA" --connect-to "::$GUARDYN_NODE1_HTTPS" "https://$www/cached")
run "${cached[@]}"
want 'cache-status: guardyn; fwd=uri-miss'
run "${cached[@]}"
want 'cache-status: guardyn; hit'
run gdn purge $zone --url "https://$www/cached" --wait
want 'done by 2 nodes'
run "${cached[@]}"
want 'cache-status: guardyn; fwd=uri-miss'

say 'A function answers in place of an origin'
run env GOOS=wasip1 GOARCH=wasm go build -ldflags=-s -o "$data/hello.wasm" ./examples/functions/go
run gdn function test $zone hello --module "$data/hello.wasm" --request examples/functions/request.yaml
want "$(printf 'Hello, edge!\nPOST /hello')"
run gdn function add $zone hello "$data/hello.wasm"
run gdn rules set $zone function examples/functions/rules.yaml
run gdn apply -m 'a greeting' --accept-disruption --wait
for https in "$GUARDYN_NODE1_HTTPS" "$GUARDYN_NODE2_HTTPS"; do
	run curl --cacert "$GUARDYN_DEMO_CA" --connect-to "::$https" "https://$www/hello?name=visitor"
	want 'Hello, visitor!'
done

say 'A change on trial: the next pool has nobody in it, so every node goes back by itself. A WebSocket stays open over that'
[ -x "$data/websocket" ] || go build -o "$data/websocket" ./examples/websocket
mkfifo "$data/messages" "$data/answers"
echo "\$ go run ./examples/websocket -host $www -cacert \$GUARDYN_DEMO_CA wss://$GUARDYN_NODE1_HTTPS/websocket"
"$data/websocket" -host $www -cacert "$GUARDYN_DEMO_CA" "wss://$GUARDYN_NODE1_HTTPS/websocket" <"$data/messages" >"$data/answers" 2>&1 &
exec 3>"$data/messages" 4<"$data/answers"
message() { # message TEXT: sends it and prints what comes back
	echo "> $1"
	echo "$1" >&3
	IFS= read -r -t 10 answer <&4 || answer='nothing'
	printf '< %s\n' "$answer"
}
message 'before'
want ': before'
printf 'origins:\n  - {name: nobody, address: "127.0.0.1:1"}\n' >"$data/nobody.yaml"
run gdn pool set $zone web "$data/nobody.yaml"
try gdn apply --coordinated --confirm-window 3s --soak 1s --deadline 30s -m 'the new machine' --accept-disruption --wait
want_code 4
want 'was reverted'
message 'after'
want ': after'
exec 3>&-
until_seen 'Hello from demo origin' curl --cacert "$GUARDYN_DEMO_CA" --connect-to "::$GUARDYN_NODE2_HTTPS" "https://$www/" # it hears of it by itself
want 'Hello from demo origin'
run gdn pool set $zone web "$data/fleet/pool.yaml"

say 'The fleet'
run gdn node list
run gdn history
run gdn status
want 'Everything you have saved is being served.'

checked
say 'What to try next, in another terminal'
cat <<TEXT
  . $data/fleet/dev.env           # then bin/gdn speaks to this fleet
  bin/gdn pool status $zone --watch
  bin/gdn record add $zone hello A 192.0.2.99 && bin/gdn plan && bin/gdn apply -m hello
  bin/gdn zone export $zone
  bin/gdn dev --help              # what the origins answer
  bin/gdn --help

Ctrl-C stops everything and removes $data.
TEXT
wait "${pids[0]}"
