#!/bin/sh
# SPDX-License-Identifier: MIT
# Field cases on integrity about looking for wrong bytes: 48 (a count of mismatches frightens or is
# ignored: which bytes of the array, and whose?), 57 (the check of an array that lacks a member
# brought the host down), 70 (nothing is repaired unasked). And 59 in part: a member that missed a lot.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0
RUN_SECONDS=60

data_of() {
	echo $(($("$STRAKE" examine "$1" | sed -n 's/.*Data Offset : \([0-9]*\) sectors/\1/p') * 512))
}

spoil() { # spoil MEMBER BYTE BYTES
	head -c "$3" /dev/urandom |
		dd of="$1" bs=512 oflag=seek_bytes seek=$(($(data_of "$1") + $2)) conv=notrunc status=none
}

made() { # made LEVEL COUNT
	rm -f d?
	mkd "$2" 24M
	runs "$at: create" create md0 --level "$1" --raid-devices "$2" --assume-clean --export=fuse $(ls d?) ||
		give_up "$at"
	check "$at: write" "$PATTERN" write "$node" 1
	check "$at: clean" until_true 20 sh -c "'$STRAKE' detail md0 | grep -q ' State : clean'"
}

# Three places on one member, at the start, in the middle, at the end: three ranges, and no write.
places() { # places LEVEL COUNT MEMBER-IS-KNOWN
	at="raid $1 of $2"
	made "$1" "$2"
	spoil d1 0 512
	spoil d1 9437184 4096
	spoil d1 22020096 512
	snap d?
	run check md0 --wait
	check "$at: check: exit code" [ $rc -eq 1 ]
	check "$at: three ranges" [ "$(grep -cE 'bytes [0-9]+ to [0-9]+ of' "$T/out")" -eq 3 ]
	if [ "$3" = known ]; then
		check "$at: each with its member" [ "$(grep -cE 'slot 1 \(.*d1\) is wrong' "$T/out")" -eq 3 ]
	else
		check "$at: nobody is blamed" sh -c "! grep -q ') is wrong' '$T/out'"
	fi
	run repair md0 </dev/null
	check "$at: without an answer nothing is repaired" [ $rc -eq 1 ]
	same "$at: check and the question"
	runs "$at: repair" repair md0 --yes
	runs "$at: check again" check md0 --wait
	check "$at: no mismatch" grep -q 'no mismatch' "$T/out"
	[ "$3" != known ] || check "$at: content" "$PATTERN" verify "$node" 1
	runs "$at: stop" stop md0
}
places 1 2 unknown
places 1 3 known
places 4 3 unknown
places 5 4 unknown
places 6 5 known

# Two members of a RAID 6 wrong in one row: nobody can tell, and nobody is blamed.
at="raid 6, two wrong"
made 6 5
spoil d1 4194304 512
spoil d3 4194304 512
run check md0 --wait
check "$at: check" [ $rc -eq 1 ]
check "$at: nobody is blamed" sh -c "! grep -q ') is wrong' '$T/out'"
check "$at: cannot tell" grep -q 'cannot tell' "$T/out"
runs "$at: stop" stop md0

# Degraded: at once an answer, the array serves, nothing is written.
at="degraded"
made 5 3
runs "$at: one fails" md0 --fail d0
check "$at: clean" until_true 20 sh -c "'$STRAKE' detail md0 | grep -q ' State : clean'"
snap d1 d2
refused "$at: check" 1 'missing' 'add' -- check md0 --wait
refused "$at: repair" 1 'missing' 'add' -- repair md0 --yes
same "$at: check and repair"
check "$at: it serves" "$PATTERN" verify "$node" 1
runs "$at: stop" stop md0

# An old member is slipped in for the newer one, by its bytes: the check finds what it missed.
at="an old copy"
made 6 4
mkdir old
runs "$at: stop" stop md0
cp --sparse=always d2 old/
runs "$at: assemble" assemble md0 --export=fuse d0 d1 d2 d3
check "$at: a third is written anew" "$PATTERN" write "$node" 2 0 8388608
runs "$at: stop" stop md0
from=$(($(data_of d2) / 4096))
dd if=old/d2 of=d2 bs=4096 skip=$from seek=$from conv=notrunc status=none
runs "$at: assemble" assemble md0 --export=fuse d0 d1 d2 d3
run check md0 --wait
check "$at: check: exit code" [ $rc -eq 1 ]
check "$at: the member is named" grep -qE 'd2\) is wrong' "$T/out"
check "$at: and only it" sh -c "! grep ') is wrong' '$T/out' | grep -qv 'd2) is wrong'"
runs "$at: repair" repair md0 --yes
check "$at: what was written last" "$PATTERN" verify "$node" 2 0 8388608
check "$at: and the rest" "$PATTERN" verify "$node" 1 8388608 8388608
runs "$at: stop" stop md0
check "nothing runs" nothing_left md0
finish
