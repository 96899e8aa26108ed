#!/bin/sh
# SPDX-License-Identifier: MIT
# Any member fails at 0, 1, 50 and 99 % of a resync, of a rebuild and of a check: nothing that was
# written is lost, before or behind the position; what the array cannot do without is not given up;
# and what is left finishes, and holds the content. (Case 69 of the field cases on integrity is of
# this kind: writes ahead of and behind a rebuild that is under way.)
. "${0%/*}/../lib.sh"
requires_fuse
requires python3
node=$STRAKE_RUNTIME_DIR/md0
RUN_SECONDS=60
size=24M

status() {
	python3 -c '
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"{\"command\":\"manage\",\"verb\":\"status\"}\n")
reply = json.loads(s.makefile().readline())
total = reply.get("total_bytes") or 0
at = reply.get("position_bytes") or 0
print(reply.get("action"), at * 100 // total if total else 0)' "$STRAKE_RUNTIME_DIR/md0.sock"
}

# position PERCENT: is the action there yet, or over?
position() {
	set -- "$1" $(status)
	[ "${2:-idle}" = idle ] || [ "${3:-0}" -ge "$1" ]
}

# approach PERCENT: fast at first, then slowly enough to stop there.
approach() {
	run speed md0 --min 1K --max 2M
	[ "$1" -lt 50 ] || { run speed md0 --max 20M && until_true 20 position $(($1 - 15)); }
	run speed md0 --max 1M
	until_true 20 position "$1" || not_ok "$at: it does not get there: $(status)"
	run speed md0 --max 10K
}

# begin LEVEL COUNT WHAT: WHAT (resync, recover, check) runs slowly; pattern 1 is the content.
begin() {
	rm -f d? e?
	mkd "$2" $size
	truncate -s $size e0
	for member in $(ls d?); do
		head -c 1000000 /dev/urandom | dd of="$member" bs=1M seek=3 conv=notrunc status=none
	done
	clean=--assume-clean
	[ "$3" != resync ] || clean=--force
	run create md0 --level "$1" --raid-devices "$2" --run $clean --export=fuse --bitmap=none $(ls d?)
	[ $rc -eq 0 ] || give_up "create level $1: $(cat "$T/err")"
	run speed md0 --min 2M --max 2M
	"$PATTERN" write "$node" 1 >/dev/null || not_ok "write"
	case $3 in
	recover) run md0 --fail d0 --remove d0 --add e0 ;;
	check) run check md0 ;;
	esac
}

# fails LEVEL COUNT WHAT PERCENT MEMBER CODE: MEMBER fails at PERCENT, and --fail answers with CODE.
fails() {
	at="raid $1: $3 at $4 %: $5"
	begin "$1" "$2" "$3"
	approach "$4"
	run md0 --fail "$5"
	if [ $rc -ne "$6" ]; then
		# It may have come to its end a moment before: then everything can be done without.
		[ "$rc $6 $4" = "0 2 99" ] || not_ok "$at: exit code $rc, should be $6: $(cat "$T/err")"
	fi
	"$PATTERN" verify "$node" 1 >/dev/null 2>&1 || not_ok "$at: content"
	run speed md0 --max 200M --min 100M
	"$PATTERN" write "$node" 2 1048576 4194304 >/dev/null 2>&1 || not_ok "$at: write"
	run wait md0
	"$PATTERN" verify "$node" 2 1048576 4194304 >/dev/null 2>&1 || not_ok "$at: content that was written then"
	"$PATTERN" verify "$node" 1 0 1048576 >/dev/null 2>&1 || not_ok "$at: content before it"
	run check md0 --wait
	# Of an array that has no redundancy left there is nothing to check (case 57).
	grep -q 'no mismatch' "$T/out" || grep -q 'missing or not rebuilt' "$T/err" ||
		not_ok "$at: check: $(cat "$T/out" "$T/err" | tail -n 3)"
	# What another process makes of the members that are left.
	run stop md0
	[ $rc -eq 0 ] || not_ok "$at: stop: $(cat "$T/err")"
	members=$(ls d?)
	[ "$3" != recover ] || members="$members e0"
	run assemble md0 --run --readonly --export=fuse $members
	[ $rc -eq 0 ] || not_ok "$at: assemble: $(cat "$T/err")"
	"$PATTERN" verify "$node" 2 1048576 4194304 >/dev/null 2>&1 || not_ok "$at: content of its members"
	run stop md0
	ok "$at"
}

for percent in 0 1 50 99; do
	# Its source or its target: a resync has no device it could not do without.
	fails 1 3 resync $percent d0 0
	fails 5 3 resync $percent d2 0
	fails 10 4 resync $percent d1 0
	fails 6 4 resync $percent d3 0
	# What a rebuild reads from is needed, unless there is more redundancy than one.
	fails 5 3 recover $percent d1 2
	fails 5 3 recover $percent e0 0
	fails 6 4 recover $percent d1 0
	fails 1 2 recover $percent d1 2
	fails 10 4 recover $percent d1 2
	fails 10 4 recover $percent d2 0
	fails 5 3 check $percent d0 0
	fails 1 2 check $percent d0 0
done
check "nothing runs" nothing_left md0
finish
