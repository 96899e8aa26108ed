#!/bin/sh
# SPDX-License-Identifier: MIT
# Case 51 of the field cases on integrity: an enclosure with several members loses its power for a
# moment, all of its members are gone within milliseconds, and the array fails. Nothing is wrong with
# any of them: when they are back the array starts from all of them, and only what the write-intent
# bitmap names is resynced. Nobody has to force anything or edit superblocks.
#
# The members are files of other arrays, whose processes are killed.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0
low=$STRAKE_RUNTIME_DIR/low
RUN_SECONDS=60

powers_up() { # powers_up NUMBER…
	for i in "$@"; do
		"$STRAKE" stop --quiet low$i 2>/dev/null
		"$STRAKE" assemble low$i --quiet --export=fuse f$i 2>"$T/err" || not_ok "low$i starts: $(cat "$T/err")"
	done
}

loses_power() { # loses_power NUMBER…
	pids=
	for i in "$@"; do pids="$pids $(daemon_pid low$i)"; done
	kill -9 $pids
	for i in "$@"; do "$STRAKE" stop --quiet low$i 2>/dev/null; done
}

# made LEVEL: four members in enclosures of their own; pattern 1, and every bit of the bitmap clear.
made() {
	for i in 0 1 2 3; do
		rm -f f$i
		truncate -s 40M f$i
		"$STRAKE" create low$i --level linear --force --raid-devices 1 --quiet --export=fuse f$i 2>"$T/err" ||
			give_up "an array to be a member: $(cat "$T/err")"
	done
	runs "$at: create" create md0 --level "$1" --raid-devices 4 --bitmap=internal --bitmap-chunk=64K \
		--delay=1 --export=fuse ${low}0 ${low}1 ${low}2 ${low}3 || give_up "$at"
	check "$at: write" "$PATTERN" write "$node" 1
	check "$at: the bitmap is cleared" until_true 20 settled
}

settled() {
	"$STRAKE" examine --examine-bitmap ${low}0 2>/dev/null | grep -qE ' 0 dirty' &&
		"$STRAKE" detail md0 | grep -q 'State : clean'
}

written() {
	run detail --json md0
	tr -d '\n ' <"$T/out" | grep -oE '"written_bytes":[0-9]*' | cut -d: -f2 | sort -n | tail -n 1
}

ends() {
	run stop md0
	for i in 0 1 2 3; do run stop low$i; done
	check "$at: nothing runs" until_true 5 no_daemons
}

# together LEVEL NUMBER…: too many at once; all come back.
together() {
	at="raid $1 loses members $(echo "$2 ${3:-} ${4:-}")"
	level=$1
	shift
	made "$level"
	check "$at: a last write" "$PATTERN" write "$node" 2 8388608 65536
	loses_power "$@"
	head -c 65536 /dev/urandom >noise
	check "$at: no write is acknowledged any more" \
		sh -c "! dd if=noise of=$node bs=64K conv=notrunc,fsync 2>/dev/null"
	run detail --test md0
	# As md's: a mirror keeps its last copy, good or bad.
	[ "$level" = 1 ] || [ "$level" = 10 ] || check "$at: detail --test: unusable" [ $rc -eq 2 ]
	run stop md0
	[ $rc -eq 0 ] || echo "# stop said: $(cat "$T/err")"
	check "$at: it is gone" [ ! -S "$STRAKE_RUNTIME_DIR/md0.sock" ]
	powers_up "$@"
	runs "$at: assemble, without force" assemble md0 --export=fuse ${low}0 ${low}1 ${low}2 ${low}3
	run wait md0
	run detail --test md0
	check "$at: all of them are in it" [ $rc -eq 0 ]
	bytes=$(written)
	check "$at: a small part was resynced ($bytes bytes)" [ "${bytes:-99999999}" -lt 1048576 ]
	check "$at: what was acknowledged last" "$PATTERN" verify "$node" 2 8388608 65536
	check "$at: and before" "$PATTERN" verify "$node" 1 1048576 4194304
	runs "$at: check" check md0 --wait
	check "$at: no mismatch" grep -q 'no mismatch' "$T/out"
	ends
}

# one_by_one LEVEL: one is lost, and what it misses is written; then two more.
one_by_one() {
	at="raid $1 loses one, then two"
	made "$1"
	loses_power 3
	check "$at: write without it" "$PATTERN" write "$node" 2 8388608 65536
	loses_power 1 2
	run detail md0 # whether it has noticed or not
	dd if=/dev/zero of="$node" bs=4K count=1 conv=notrunc,fsync 2>/dev/null
	run stop md0
	powers_up 1 2 3
	# Writes were in flight, and a member is missing: parity may be wrong there.
	refused "$at: dirty and degraded" 1 'dirty' 'low3' 'force' -- \
		assemble md0 --run --export=fuse ${low}3 ${low}2 ${low}1 ${low}0
	runs "$at: by force" assemble md0 --force --run --export=fuse ${low}3 ${low}2 ${low}1 ${low}0
	check "$at: the one that missed something is named" grep -q 'low3' "$T/err"
	check "$at: what it missed" "$PATTERN" verify "$node" 2 8388608 65536
	runs "$at: it comes back" md0 --re-add ${low}3
	check "$at: words" grep -q 're-added' "$T/err"
	run wait md0
	run detail --test md0
	check "$at: all of them are in it" [ $rc -eq 0 ]
	check "$at: what was acknowledged last" "$PATTERN" verify "$node" 2 8388608 65536
	check "$at: and before" "$PATTERN" verify "$node" 1 1048576 4194304
	runs "$at: check" check md0 --wait
	check "$at: no mismatch" grep -q 'no mismatch' "$T/out"
	ends
}

together 5 1 2 3
together 5 0 1
together 6 0 1 2
together 10 0 1
together 1 0 1 2 3
one_by_one 6
finish
