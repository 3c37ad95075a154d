#!/usr/bin/env bash
# hack/need.sh curl|dig|postgresql|gcc|clang|java|npm|knot|nsd|named|nginx|haproxy|varnishd|dnsperf|wrk|mosquitto|h2load: installs the Debian package that has what is needed, when it is missing.
set -euo pipefail

installed() {
	case $1 in
	postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ;;
	java) command -v java >/dev/null ;;
	npm) command -v npm >/dev/null ;;
	knot) compgen -G '/usr/*bin/knotd' >/dev/null || command -v knotd >/dev/null ;;
	nsd) compgen -G '/usr/*bin/nsd' >/dev/null || command -v nsd >/dev/null ;;
	named | nginx | haproxy | varnishd | mosquitto) compgen -G "/usr/*bin/$1" >/dev/null || command -v "$1" >/dev/null ;;
	curl | dig | dnsperf | wrk | h2load) command -v "$1" >/dev/null ;;
	gcc) command -v gcc >/dev/null && [ -e /usr/include/stdlib.h ] ;;
	clang) command -v clang >/dev/null && command -v wasm-ld >/dev/null && compgen -G '/usr/lib/wasm32-wasi/libc.a' >/dev/null ;;
	*) echo "error: $1 is not known here" >&2; exit 2 ;;
	esac
}

need=$1
packages=("$need")
case $need in
postgresql) why="the tests start a private cluster with PostgreSQL's server programs" ;;
java) why="the tests start DynamoDB Local, a Java program"; packages=(default-jre-headless) ;;
knot | nsd) why="the tests compare this DNS server's answers with its own" ;;
named) why="the node is measured beside BIND"; packages=(bind9) ;;
nginx) why="the node is measured beside nginx, which is the origin too"; packages=(nginx-light) ;;
mosquitto) why="the bridge is tested with it, and measured beside its own" ;;
haproxy) why="the node is measured beside HAProxy" ;;
varnishd) why="the node is measured beside Varnish"; packages=(varnish) ;;
curl) why="the demo and the documents' commands ask nodes with it" ;;
dig) why="the demo and the documents' commands ask nodes with it"; packages=(bind9-dnsutils) ;;
dnsperf | wrk) why="it is what loads the servers" ;;
h2load) why="it loads the servers, in tests too"; packages=(nghttp2-client) ;;
npm) why="the tests fetch DynamoDB Local from an npm package" ;;
clang) why="the tests compile a function in C to WebAssembly"; packages+=(lld wasi-libc libclang-rt-dev-wasm32) ;;
gcc) why="Go's race detector needs a C compiler"; packages+=(libc6-dev) ;;
esac

installed "$need" && exit 0
if ! command -v apt-get >/dev/null; then
	echo "error: $why, and there is none" >&2
	echo "hint: install your system's package of $need and run this again" >&2
	exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
		echo "error: $why, and this user may not install the Debian package $need" >&2
		echo "hint: sudo apt-get install ${packages[*]}, then run this again" >&2
		exit 1
	fi
	run=(sudo -n)
fi
echo "installing ${packages[*]}: $why" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{
	"${run[@]}" apt-get update &&
		"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
} >"$log" 2>&1 </dev/null || {
	cat "$log" >&2
	echo "error: ${packages[*]} could not be installed" >&2
	exit 1
}
installed "$need" || { echo "error: ${packages[*]} is installed, and still not found" >&2; exit 1; }
