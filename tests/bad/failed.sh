#!/bin/sh
# SPDX-License-Identifier: MIT
# What must not be asked of an array: to give up the last member, to let go of one in use, to take a
# new one when it has failed. Refused with the reason, and no byte of anything is written.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0

content() { check "$1: content" "$PATTERN" verify "$node" 1; }

# last LEVEL COUNT FIRST…: after FIRST have failed, nobody else may.
last() {
	at="raid $1" level=$1 count=$2
	shift 2
	rm -f d? e0
	mkd "$count" 8M
	truncate -s 8M e0
	runs "$at: create" create md0 --level "$level" --raid-devices "$count" --assume-clean --export=fuse \
		$(ls d?) || return
	check "$at: write" "$PATTERN" write "$node" 1
	none=
	codes=2
	if [ "$level" = 0 ] || [ "$level" = linear ]; then
		none="no redundancy" # nobody can come or go
		codes=1
	fi
	for member in d?; do
		refused "$at: remove $member, which is in use" "$codes" "$member" "${none:-fail it first}" -- md0 --remove $member
	done
	for member in "$@"; do runs "$at: $member fails" md0 --fail "$member"; done
	check "$at: settled" until_true 20 sh -c "'$STRAKE' detail md0 | grep -q ' State : clean'"
	snap $(ls d?) e0
	for member in $(ls d?); do
		case " $* " in *" $member "*) continue ;; esac
		refused "$at: fail $member too" "$codes" "$member" -- md0 --fail $member
		refused "$at: remove $member" "$codes" "$member" -- md0 --remove $member
		refused "$at: fail, remove and add in one line" "$codes" "$member" -- \
			md0 --fail $member --remove $member --add e0
	done
	same "$at: the last"
	content "$at: the last"
	run stop md0
}
last 1 2 d0
last 1 3 d0 d2
last 4 3 d2
last 5 3 d1
last 6 4 d0 d3
last 10 2 d1
last 0 2
last linear 2

# An array that has failed: two of its members (files of other arrays) are gone.
low=$STRAKE_RUNTIME_DIR/low
level=5
rm -f d?
mkd 3 16M
truncate -s 16M e0
for i in 0 1 2; do
	run create low$i --level linear --force --raid-devices 1 --export=fuse d$i
	[ $rc -eq 0 ] || give_up "an array to be a member"
done
runs "failed: create" create md0 --level 5 --raid-devices 3 --assume-clean --export=fuse ${low}0 ${low}1 ${low}2
check "failed: write" "$PATTERN" write "$node" 1
# So that the first write has to be recorded on all.
check "failed: clean" until_true 20 sh -c "'$STRAKE' detail md0 | grep -q ' State : clean'"
p1=$(daemon_pid low1)
p2=$(daemon_pid low2)
kill -9 "$p1" "$p2"
run stop low1
run stop low2
dd if=/dev/zero of="$node" bs=4K count=64 conv=notrunc,fsync 2>/dev/null &&
	not_ok "failed: a write is acknowledged"
run detail --test md0
check "failed: detail --test" [ $rc -eq 2 ]
snap d0 d1 d2 e0
refused "failed: add" 1 'e0' 'failed' -- md0 --add e0
refused "failed: add by force" 1 'e0' 'failed' -- md0 --force --add e0
refused "failed: add a spare" 1 'e0' 'failed' -- md0 --add-spare e0
refused "failed: replace" 1 'low0|failed' -- md0 --replace ${low}0 --with e0
refused "failed: repair" 1 'failed|state|fail' -- repair md0 --yes
refused "failed: fail the rest" "1 2" 'low0' -- md0 --fail ${low}0
same "failed"
run stop md0
for i in 0 1 2; do run stop low$i; done
check "nothing runs" nothing_left md0
finish
