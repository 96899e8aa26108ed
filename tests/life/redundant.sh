#!/bin/sh
# SPDX-License-Identifier: MIT
# Arrays with redundancy are made: every level and layout, spares, missing slots, bitmaps, blank
# members and such with data, and what a failed create leaves. mdadm reads what was written.
. "${0%/*}/../lib.sh"
requires_fuse
requires mdadm
node=$STRAKE_RUNTIME_DIR/md0

state() { # state FILE: mdadm's word
	mdadm --examine "$1" | awk '$1 == "State" { print $3 }'
}
role() {
	mdadm --examine "$1" | sed -n 's/^ *Device Role : //p'
}
healthy() {
	"$STRAKE" detail --test md0 >/dev/null && "$STRAKE" detail md0 | grep -q ' State : clean $'
}
noise() { # noise FILE…: members that hold data, also the two of three that a parity array would miss
	for f in "$@"; do
		head -c 3000000 /dev/urandom | dd of="$f" bs=1M seek=2 conv=notrunc status=none
	done
}

# whole LEVEL N [ARGUMENT…]: made of blank members it is clean at once; content lives through a stop;
# mdadm says the same of level and layout; one member may go.
whole() {
	level=$1
	n=$2
	shift 2
	what="level $level of $n $*"
	mkd "$n" 8M
	members=$(ls d*)
	runs "$what: create" create md0 --level "$level" --raid-devices "$n" --export=fuse "$@" $members
	check "$what: no resync" grep -q 'no initial resync' "$T/err"
	check "$what: clean at once" healthy
	check "$what: write" "$PATTERN" write "$node" "$n"
	runs "$what: stop" stop md0
	check "$what: mdadm finds it clean" [ "$(state d0)" = clean ]
	runs "$what: assemble without a member" assemble md0 --run --export=fuse $(ls d* | sed 1d)
	check "$what: content without a member" "$PATTERN" verify "$node" "$n"
	run detail --test md0
	check "$what: degraded" [ $rc -eq 1 ]
	runs "$what: stop again" stop md0
	rm -f d*
}

whole 1 2
whole 1 3 --metadata=1.0 --bitmap=internal
whole 4 3 --chunk 64
for layout in la ra ls rs parity-first parity-last; do whole 5 3 --chunk 16 --layout $layout; done
for layout in la rs ddf-zero-restart ddf-N-restart ddf-N-continue left-symmetric-6 parity-first-6; do
	whole 6 4 --chunk 16 --layout $layout
done
whole 10 4 --bitmap=internal --bitmap-chunk=4K
whole 10 3 --layout=f2 --metadata=1.1
whole 10 5 --layout=o2 --chunk 32
whole 10 3 --layout=n3 --metadata=0.90

# Members with data: RAID 5 leaves one to be rebuilt, with --force and elsewhere it resyncs ----------
made_of_data() {
	mkd 3 8M
	noise d0 d1 d2
	runs "$1" create md0 --run --export=fuse --raid-devices 3 $2 d0 d1 d2
	check "$1: not blank" sh -c "! grep -q 'no initial resync' '$T/err'"
	check "$1: whole in the end" until_true 30 healthy
	check "$1: write" "$PATTERN" write "$node" 5
	runs "$1: stop" stop md0
	for without in 0 1 2; do
		"$STRAKE" cat --run $(ls d* | grep -v "$without") | "$PATTERN" verify - 5 0 \
			"$("$STRAKE" cat d0 d1 d2 | wc -c)" >/dev/null ||
			not_ok "$1: content without d$without"
	done
	ok "$1: content without each member"
}
made_of_data "RAID 5 of members with data" "--level 5"
check "mdadm: the last is d2, number 3" [ "$(role d2)" = "Active device 2" ]
made_of_data "RAID 5 with --force" "--level 5 --force"
made_of_data "RAID 1" "--level 1"
made_of_data "RAID 10" "--level 10 --bitmap=internal"
mkd 2 8M
noise d0
runs "assume-clean" create md0 --run --export=none --level 1 --assume-clean d0 d1
check "assume-clean: clean" [ "$(state d0)" = clean ]

# A single byte that is not zero, near the end of the data, is enough not to be blank -----------------
mkd 2 8M
printf x | dd of=d1 bs=1 seek=8388600 conv=notrunc status=none
runs "one byte of data" create md0 --run --export=none --level 1 d0 d1
check "one byte of data: a resync is due" [ "$(state d1)" = active ]
mkd 2 8M
dd if=/dev/zero of=d1 bs=1M count=8 conv=notrunc status=none
runs "zeros that were written" create md0 --run --export=none --level 1 d0 d1
check "zeros that were written: clean" [ "$(state d1)" = clean ]

# Spares and missing slots ------------------------------------------------------------------------------
mkd 4 8M
runs "spare and missing" create md0 --export=fuse --level 5 --raid-devices 3 --spare-devices 1 \
	d0 missing d2 d3
check "the spare takes the missing slot" until_true 30 healthy
runs "stop" stop md0
check "mdadm: the spare has slot 1" [ "$(role d3)" = "Active device 1" ]
mkd 3 8M
runs "write-mostly and failfast" create md0 --export=fuse --level 1 d0 --write-mostly d1 --failfast d2
run detail md0
check "detail tells them" [ "$(grep -cE 'writemostly +/|writemostly failfast +/' "$T/out")" = 2 ]
run status
check "status tells them" grep -q 'd2\[2\](W) d1\[1\](W) d0\[0\]$' "$T/out"
runs "stop" stop md0
check "mdadm tells them" sh -c "mdadm --examine d2 | grep -q 'Flags : write-mostly failfast'"

# Without superblocks --------------------------------------------------------------------------------------
mkd 3 8M
noise d0 d2
cp d0 d0.before
runs "build" build md0 --level 1 --raid-devices 3 --export=fuse d0 missing d2
check "build: a resync makes the copies equal" until_true 20 cmp -s d0 d2
check "build: the first member is the source" cmp d0 d0.before
check "build: write" "$PATTERN" write "$node" 6
run status md0
check "build: status" grep -q 'super non-persistent \[3/2\] \[U_U\]$' "$T/out"
runs "build: stop" stop md0
check "build: the members are the array" "$PATTERN" verify d2 6
check "build: no superblock was written" sh -c "! mdadm --examine d0 2>/dev/null"
refused "build of RAID 5" 1 'raid5' -- build md0 --level 5 --raid-devices 3 d0 d1 d2
refused "build of nothing" 1 'members' -- build md0 --level 1 --raid-devices 2 missing missing
refused "build with an internal bitmap" 1 'bitmap' -- \
	build md0 --level 1 --raid-devices 2 --bitmap=internal d0 d1

# The second member cannot be written: all is as before, the bitmaps' places too --------------------------
mkd 2 8M
noise d0 d1
head -c 65536 /dev/urandom | dd of=d0 bs=4096 conv=notrunc status=none
truncate -s 24M d1
cp d0 d0.before
cp d1 d1.before
limited() { # files must not grow, or be written, behind 10 MiB
	(
		trap '' XFSZ
		ulimit -f 20480
		"$STRAKE" create md0 --run --export=none --level 1 --metadata 1.0 --bitmap=internal d0 d1
	) >"$T/out" 2>"$T/err"
}
limited
rc=$?
check "a write that fails: exit code" [ $rc -eq 1 ]
check "a write that fails: it says that all is as before" grep -q 'as they were before' "$T/err"
check "a write that fails: first member" cmp d0 d0.before
check "a write that fails: second member" cmp d1 d1.before
check "nothing runs" nothing_left md0
finish
