#!/bin/sh
# SPDX-License-Identifier: MIT
# create: devices that cannot become members. Nothing is written to any of them.
. "${0%/*}/../lib.sh"

mkd 2 16M
"$PATTERN" write d0 1
"$PATTERN" write d1 2
: >empty
truncate -s 4096 small
mkdir folder sub
ln -s d0 link
ln d0 hard
mkfifo fifo
snap d0 d1 empty small

pair="create md0 --export=none --run --level 0 --raid-devices 2"

# mdadm itself answers 2 for a device that it cannot open, its manual page says 1 for all failures.
refused "missing file" "1 2" 'd9' 'no such file' -- $pair d0 d9
refused "missing file, listed first" "1 2" 'd9' 'no such file' -- $pair d9 d0
refused "empty file" "1 2" 'empty' 'small|empty|0 bytes' -- $pair d0 empty
refused "file smaller than the reserved space" "1 2" 'small' 'small|too' -- $pair d0 small
refused "directory" "1 2" 'folder' 'directory' -- $pair d0 folder
refused "pipe" "1 2" 'fifo' 'block device|file' -- $pair d0 fifo
refused "character device" "1 2" '/dev/null' 'block device|file' -- $pair d0 /dev/null
refused "the same member twice" "1 2" 'd0' 'same|twice' -- $pair d0 d0
refused "the same member by another path" "1 2" 'd0' 'same|twice' -- $pair d0 sub/../d0
refused "the same member by an absolute path" "1 2" 'd0' 'same|twice' -- $pair d0 "$T/d0"
refused "the same member by a symlink" "1 2" 'link' 'same|twice' -- $pair d0 link
refused "the same member by a hard link" "1 2" 'hard' 'same|twice' -- $pair d0 hard
same "refused create"

for metadata in 0.90 1.0 1.1 1.2; do
	for bytes in 1 511 512 4095 12288 65536; do
		rm -f tiny && truncate -s $bytes tiny
		run $pair --metadata=$metadata d0 tiny
		check "member of $bytes bytes, metadata $metadata: refused" [ $rc = 1 -o $rc = 2 ]
		check "member of $bytes bytes, metadata $metadata: named" grep -q tiny "$T/err"
	done
done
same "too small members"
check "nothing runs" nothing_left md0
finish
