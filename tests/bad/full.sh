#!/bin/sh
# SPDX-License-Identifier: MIT
# A full disk under image files: the client gets ENOSPC, and what was there stays readable.
. "${0%/*}/../lib.sh"
requires_root
requires_fuse
requires nbdcopy

mkdir small
mount -t tmpfs -o size=12M small small || skip "cannot mount a tmpfs"
truncate -s 64M small/d0 small/d1
runs "create" create md0 --level 0 --raid-devices 2 --chunk 64 --export=none small/d0 small/d1
runs "assemble" assemble md0 --export=fuse small/d0 small/d1 || finish
check "the beginning can be written" "$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" 5 0 4194304
"$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" 5 4194304 33554432 2>said
check "FUSE: the client gets ENOSPC" grep -q 'No space left on device' said
runs "detail" detail md0
check "the beginning can be read" "$PATTERN" verify "$STRAKE_RUNTIME_DIR/md0" 5 0 4194304
runs "stop" stop md0
"$STRAKE" cat --length 4M small/d0 small/d1 | "$PATTERN" verify - 5 0 4194304
check "the beginning can be read by cat" [ $? = 0 ]

# Several rounds: a client that leaves with requests in flight can end its nbdkit (life/nbd-restart),
# at the wrong moment, and must not end the array.
"$PATTERN" write whole 6 2>/dev/null
truncate -s 32M whole
"$PATTERN" write whole 6
rm small/d0 small/d1
truncate -s 64M small/d0 small/d1
runs "create" create md0 --level 0 --raid-devices 2 --chunk 64 --export=none small/d0 small/d1
runs "assemble" assemble md0 "--export=nbd:$T/nbd" small/d0 small/d1 || finish
for round in 1 2 3 4 5 6; do
	nbdcopy --flush whole "nbd+unix:///?socket=$T/nbd" >said 2>&1
	check "NBD, round $round: the copy fails" [ $? != 0 ]
	check "NBD, round $round: the client gets ENOSPC" grep -q 'No space left on device' said
	run status
	check "NBD, round $round: the array is still there" grep -q '^md0 :' "$T/out"
done
runs "stop" stop md0
check "stop: its processes end" until_true 5 no_daemons
finish
