# shellcheck shell=bash
# What a walk through a demo begins with and is told with. It is sourced, by a script whose first argument is the path of gdn: it goes to the
# top of the tree, makes a directory, data, and ends with the processes of pids, which the script adds to, and with that directory. Then there
# are say, run, try, until_seen and, with CHECK set, want and checked.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
check=${CHECK:-}
# A variable left over from another fleet must not reach this one, and no proxy what is asked on this machine.
for name in $(compgen -e | grep '^GUARDYN_' || true); do unset "$name"; done
export no_proxy='*'

data=$(mktemp -d)
pids=()
stop() {
	trap - EXIT INT TERM
	exec 3>&- 4<&-
	if [ ${#pids[@]} -gt 0 ]; then
		kill -TERM "${pids[@]}" 2>/dev/null || true
		wait "${pids[@]}" 2>/dev/null || true
	fi
	rm -rf "$data"
}
trap stop EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

gdn() { "$program" "$@"; }
# Errors are shown, a progress meter is not, and nothing is waited for longer than ten seconds.
curl() { command curl -sS --max-time 10 "$@"; }
dig() { command dig +short +timeout=5 "$@"; }

# run COMMAND ARGUMENT... prints a command, runs it and keeps what it prints in answer, and in code how it ended. try does the same with a
# command that may fail.
run() {
	try "$@"
	if [ "$code" != 0 ]; then
		echo "error: it ended with $code" >&2
		exit 1
	fi
}
try() {
	command_line "$@"
	ask "$@"
	[ -z "$answer" ] || printf '%s\n' "$answer"
}
ask() {
	code=0
	answer=$("$@" 2>&1) || code=$?
	answer=${answer//$'\r'/}
}
command_line() {
	local word line='$'
	for word in "$@"; do
		case $word in
		*[!A-Za-z0-9_./:=%@+-]*) line+=" '$word'" ;;
		*) line+=" $word" ;;
		esac
	done
	printf '%s\n' "$line"
}
failed=0
want() { # want TEXT: the last answer has it
	[ -n "$check" ] || return 0
	case $answer in
	*"$1"*) echo "  ok: $1" ;;
	*) echo "  NOT OK: want $1"; failed=1 ;;
	esac
}
want_not() { # want_not TEXT: it has not
	[ -n "$check" ] || return 0
	case $answer in
	*"$1"*) echo "  NOT OK: do not want $1"; failed=1 ;;
	*) echo "  ok: no $1" ;;
	esac
}
want_code() { # want_code N: the last command ended with it
	[ -n "$check" ] || return 0
	if [ "$code" = "$1" ]; then echo "  ok: it ended with $1"; else echo "  NOT OK: it ended with $code, want $1"; failed=1; fi
}
# until_seen PATTERN COMMAND... asks until the answer matches, for 40 s at most, and shows that answer alone.
until_seen() {
	local pattern=$1 left=200
	shift
	command_line "$@"
	until ask "$@" && [[ $answer =~ $pattern ]] || [ $((left -= 1)) = 0 ]; do sleep 0.2; done
	printf '%s\n' "$answer"
}
checked() { # ends the walk, with check set, and says how it was
	[ -n "$check" ] || return 0
	say "$([ $failed = 0 ] && echo 'Every answer is right' || echo 'Some answer is wrong')"
	exit $failed
}
