#!/bin/sh
# SPDX-License-Identifier: MIT
# Members whose superblock stands at their end, after their size has changed.
. "${0%/*}/../lib.sh"

for metadata in 0.90 1.0; do
	mkd 2 16M
	create_pair md0 --metadata $metadata
	cp d1 whole
	truncate -s 20M d1
	snap d0 d1
	refused "$metadata: enlarged" 1 'd1' 'has been enlarged.*16777216.*20971520' 'cut it' -- \
		assemble md0 --export=fuse d0 d1
	refused "$metadata: enlarged, named first" 1 'd1' 'has been enlarged' -- assemble md0 --export=fuse d1 d0
	refused "$metadata: enlarged, examine" 1 'd1' 'enlarged or cut' -- examine d1
	same "$metadata: enlarged"
	truncate -s 16M d1
	check "$metadata: the advice is right" cmp d1 whole
	truncate -s 12M d1
	refused "$metadata: cut" 1 'd1' "$metadata.*end" '12582912.*d0 has 16777216' -- \
		assemble md0 --export=fuse d0 d1
done
mkd 2 16M
create_pair md0
truncate -s 16M blank
run assemble md0 --export=fuse d0 blank
check "superblocks at the beginning: no such words" sh -c "! grep -qE 'enlarged|cut' '$T/err'"
check "nothing runs" nothing_left md0
finish
