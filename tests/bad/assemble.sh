#!/bin/sh
# SPDX-License-Identifier: MIT
# assemble: members that make no array. Nothing is written, nothing is left running.
. "${0%/*}/../lib.sh"

mkd 2 16M
create_pair md0
mv d0 a0
mv d1 a1
mkd 2 16M
create_pair md0
truncate -s 16M blank
: >empty
mkdir folder
ln -s a0 link
snap a0 a1 d0 d1 blank

as="assemble md0 --export=fuse"
refused "missing file" 1 'nope' 'no such file' -- $as a0 nope
refused "empty file" 1 'empty' -- $as a0 empty
refused "directory" 1 'folder' 'directory' -- $as a0 folder
refused "no superblock" 1 'blank' 'superblock' -- $as a0 blank
refused "no superblock on the only device" 1 'blank' 'superblock' -- $as blank
refused "members of two arrays" 1 'd1' 'array|uuid' -- $as a0 d1
refused "a member missing" 1 'slot 1|1 of 2|1 drive|need' -- $as a0
refused "a member missing, cat" 1 'slot 1|1 of 2|1 drive|need' -- cat a0
refused "a member missing, with --run" 1 'slot 1|1 of 2|1 drive|need' -- $as --run a0
refused "the same member twice" 1 'a0' -- $as a0 a0
refused "the same member by a symlink" 1 'a0|link' -- $as a0 link
refused "wrong UUID" "1 2" 'uuid' -- $as --uuid=11111111:11111111:11111111:11111111 a0 a1
refused "cat: members of two arrays" 1 'd1' 'array|uuid' -- cat a0 d1
refused "cat: no superblock" 1 'blank' 'superblock' -- cat blank
refused "cat: missing file" 1 'nope' -- cat nope
refused "cat: offset beyond the end" 1 'offset|end|beyond' -- cat --offset 1T a0 a1
refused "examine: no superblock" 1 'blank' -- examine blank
refused "examine: missing file" 1 'nope' -- examine nope
refused "detail: not running" 1 'md9' -- detail md9
refused "stop: not running" 1 'md9' -- stop md9
refused "unknown verb" 2 'frobnicate' -- frobnicate a0
same "refused assemble"

# A copy of one member beside the original.
cp a0 copy
snap a0 a1 copy
refused "two devices for one slot" 1 'copy|a0' -- $as a0 a1 copy
same "two devices for one slot"
check "nothing runs" nothing_left md0

# Conflicting event counts: more than one apart is not the same state of the array.
for metadata in 0.90 1.0 1.1 1.2; do
	mkd 2 16M
	create_pair md0 --metadata $metadata
	at=$(super_at d1 $metadata)
	field=200
	[ $metadata != 0.90 ] || field=156
	"$SUPEREDIT" d1 "$at" $field 8 7
	snap d0 d1
	refused "conflicting event counts, metadata $metadata" 1 'd[01]' 'event' -- $as d0 d1
	same "conflicting event counts, metadata $metadata"
done
check "nothing runs" nothing_left md0
finish
