# shellcheck shell=bash
# What a walk through a demo is told with: say, run, try, until_seen and, with check set, want. It is sourced; program is the path of gdn.

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
