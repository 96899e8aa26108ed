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

rm small/d0 small/d1
truncate -s 64M small/d0 small/d1
runs "create" create md0 --level 0 --raid-devices 2 --chunk 64 --export=none small/d0 small/d1
runs "assemble" assemble md0 "--export=nbd:$T/nbd" small/d0 small/d1 || finish
"$PATTERN" write whole 6 2>/dev/null
truncate -s 32M whole
"$PATTERN" write whole 6
nbdcopy --flush whole "nbd+unix:///?socket=$T/nbd" >said 2>&1
check "NBD: the copy fails" [ $? != 0 ]
check "NBD: the client gets ENOSPC" grep -q 'No space left on device' said
runs "stop" stop md0
finish
