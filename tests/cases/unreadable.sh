#!/bin/sh
# SPDX-License-Identifier: MIT
# Case 61 of the field cases on integrity: a rebuild or a replacement whose source has sectors that
# cannot be read used to end at the first of them, and again at every new try. Here it goes to its
# end: what could not be read is recorded as bad on the new member, is told, and is answered with an
# error for exactly those bytes; all the rest is there, without the source too.
#
# The sectors are made unreadable by the library of failat.c, which needs --io=sync.
. "${0%/*}/../lib.sh"
requires_fuse
requires python3
ldd "$STRAKE" | grep -qE 'lib(a|t|ub)san' && skip "sanitizers have allocators of their own"
LIBRARY=$(realpath "${FAILAT_LIBRARY:-$BUILD/tests/libfailat.so}")
node=$STRAKE_RUNTIME_DIR/md0
head -c 16 /dev/zero >control
RUN_SECONDS=60

# assemble MEMBER…: with five places of 4096 bytes of d1 that cannot be read.
assemble() {
	bad=
	for at_byte in 0 1048576 5242880 9437184 16773120; do
		bad="$bad
$T/d1 $((data + at_byte)) 4096"
	done
	FAILAT=$T/control FAILAT_UNREADABLE=$bad LD_PRELOAD=$LIBRARY "$STRAKE" assemble md0 --io=sync \
		--export=fuse "$@" >"$T/out" 2>"$T/err" </dev/null
	check "$at: assemble" [ $? -eq 0 ]
}

# errors: how many blocks of 4096 bytes of the array cannot be read, and how many hold what they should not.
errors() {
	python3 - "$node" content <<'END'
import os, sys
array, content = (os.open(name, os.O_RDONLY) for name in sys.argv[1:])
size = os.fstat(array).st_size
unread = wrong = 0
for at in range(0, size, 65536):
    want = os.pread(content, 65536, at)
    try:
        got = os.pread(array, 65536, at)
        if len(got) == len(want): # else it ends before the first error
            wrong += got != want
            continue
    except OSError:
        pass
    for block in range(at, min(at + 65536, size), 4096):
        try:
            wrong += os.pread(array, 4096, block) != want[block - at:block - at + 4096]
        except OSError:
            unread += 1
print(unread, wrong)
END
}

ranges() { "$STRAKE" examine --examine-badblocks "$1" | grep -c ' for 8 sectors'; }

# made LEVEL COUNT: pattern 1, and then d1 gets its bad places.
made() {
	rm -f d? e0
	mkd "$2" 24M
	truncate -s 24M e0
	runs "$at: create" create md0 --level "$1" --raid-devices "$2" --assume-clean --export=fuse $(ls d?) ||
		give_up "$at"
	check "$at: write" "$PATTERN" write "$node" 1
	cp "$node" content
	run stop md0
	data=$(($("$STRAKE" examine d1 | sed -n 's/.*Data Offset : \([0-9]*\) sectors/\1/p') * 512))
	assemble $(ls d?)
}

# rebuilt LEVEL COUNT: the member that held the same is lost, another takes its place.
rebuilt() {
	at="raid $1"
	made "$1" "$2"
	runs "$at: d0 is lost" md0 --fail d0 --remove d0
	runs "$at: another comes" md0 --add e0
	run wait md0
	check "$at: wait: exit code" [ $rc -eq 1 ]
	check "$at: wait: the ranges are told" grep -qE 'e0: 5 ranges' "$T/err"
	check "$at: detail tells them" sh -c "'$STRAKE' detail md0 | grep -qE 'Bad Ranges : 5 on .*e0'"
	run detail --test md0
	check "$at: it is complete" [ $rc -eq 0 ]
	# With parity the same row may lack a block of d1 as well.
	found=$(errors)
	[ "$1" != 5 ] || [ ${found% *} -gt 10 ] || found="5 ${found#* }"
	check "$at: errors for five blocks, and no wrong bytes" [ "$found" = "5 0" ]
	check "$at: d1 is kept" sh -c "'$STRAKE' detail md0 | grep -q 'active sync .*/d1'"
	check "$at: e0's log names them" until_true 5 test "$(ranges e0)" = 5
	check "$at: a write mends the first" dd if=content of="$node" bs=1M count=1 conv=notrunc,fsync status=none
	before=$(errors)
	runs "$at: stop" stop md0
	check "$at: mdadm finds the log" sh -c "! command -v mdadm || mdadm --examine-badblocks e0 | grep -q ' for 8 sectors'"
	# The log holds after a restart: no stale bytes where it has an entry.
	assemble $(ls d? | sed 1d) e0
	[ "$1" = 5 ] || check "$at: mended ($before)" [ "$before" = "4 0" ]
	check "$at: after a restart: the same errors" [ "$(errors)" = "$before" ]
	runs "$at: stop" stop md0
}

rebuilt 1 2
rebuilt 5 3
rebuilt 10 4

# With more redundancy there is another source: nothing is lost at all.
at="raid 6"
made 6 4
runs "$at: d0 is lost" md0 --fail d0 --remove d0 --add e0
run wait md0
check "$at: no errors, no wrong bytes" [ "$(errors)" = "0 0" ]
check "$at: nothing is bad on e0" [ "$(ranges e0)" = 0 ]
run detail --test md0
check "$at: it is complete" [ $rc -eq 0 ]
runs "$at: stop" stop md0

# A replacement reads what the old member cannot give from the others.
at="replacement"
made 5 3
runs "$at: a spare" md0 --add-spare e0
runs "$at: begin" md0 --replace d1 --with e0
run wait md0
check "$at: no errors, no wrong bytes" [ "$(errors)" = "0 0" ]
check "$at: nothing is bad on e0" [ "$(ranges e0)" = 0 ]
check "$at: it took the slot" sh -c "'$STRAKE' examine e0 | grep -q 'Active device 1'"
runs "$at: stop" stop md0
check "nothing runs" nothing_left md0
finish
