#!/bin/sh
# SPDX-License-Identifier: MIT
# Members that come and go of an array that is served by NBD, and nbdkits that die meanwhile.
. "${0%/*}/../lib.sh"
requires nbdkit nbdinfo nbdcopy flock
RUN_SECONDS=60

uri="nbd+unix:///?socket=$T/nbd"
nbdkit_of() { cat "/proc/$1/task/$1/children"; }
has_other_nbdkit() { [ -n "$(nbdkit_of "$keeper")" ] && [ "$(nbdkit_of "$keeper")" != "$1 " ]; }
kill_nbdkit() {
	old=$(nbdkit_of "$keeper" | tr -d ' ')
	[ -n "$old" ] && kill "-$1" "$old" && until_true 10 has_other_nbdkit "$old"
}
content() { check "$1: content" sh -c "nbdcopy '$uri' - | '$PATTERN' verify - $2 0 $size"; }
role_of() { "$STRAKE" examine "$1" | sed -n 's/.*Device Role : //p'; }
state_in() { "$STRAKE" examine "$1" | sed -n 's/.* State : //p' | head -n 1; }
is_clean() { [ "$(state_in "$1")" = clean ]; }

# life LEVEL MEMBERS
life() {
	at="raid $1"
	rm -f d? e? whole
	mkd "$2" 24M
	truncate -s 24M e0 e1
	runs "$at: create" create md0 --level "$1" --raid-devices "$2" --assume-clean \
		"--export=nbd:$T/nbd" $(ls d?) || return
	keeper=$(daemon_pid md0)
	size=$(nbdinfo --size "$uri")
	truncate -s "$size" whole
	"$PATTERN" write whole 3
	check "$at: write" nbdcopy --flush whole "$uri"
	content "$at: written" 3
	check "$at: clean by itself when nobody writes" until_true 10 is_clean d0

	runs "$at: fail, remove, add" md0 --fail d1 --remove d1 --add e0
	run wait md0
	check "$at: rebuilt while no client is there" [ "$(role_of e0)" = "Active device 1" ]
	check "$at: the removed one is nobody's" until_true 5 flock -n d1 true
	check "$at: the added one is taken" sh -c '! flock -n e0 true'
	content "$at: rebuilt" 3
	runs "$at: check" check md0 --wait

	check "$at: another nbdkit" kill_nbdkit ABRT
	content "$at: another nbdkit" 3
	runs "$at: another nbdkit: detail" detail --json md0
	check "$at: another nbdkit has the added member" grep -q '/e0"' "$T/out"
	check "$at: another nbdkit has not the removed one" sh -c "! grep -q '/d1\"' '$T/out'"
	run wait md0
	runs "$at: another nbdkit: check" check md0 --wait
	check "$at: another nbdkit: no mismatch" grep -q 'no mismatch' "$T/out"

	runs "$at: a spare that waits" md0 --add e1
	runs "$at: slowly" speed md0 --min 1M --max 4M
	runs "$at: fail while it waits" md0 --fail e0
	check "$at: killed amid the rebuild" kill_nbdkit KILL
	content "$at: killed amid the rebuild" 3
	run wait md0
	check "$at: killed amid the rebuild: rebuilt" [ "$(role_of e1)" = "Active device 1" ]
	content "$at: killed amid the rebuild: at the end" 3
	runs "$at: read-only" readonly md0
	refused "$at: read-only: add" 1 'read-only' -- md0 --add d1
	runs "$at: read-write" readwrite md0
	runs "$at: stop" stop md0
	check "$at: clean" is_clean d0
	check "$at: nothing left" nothing_left md0
}

life 1 2
life 5 3
finish
