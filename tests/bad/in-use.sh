#!/bin/sh
# SPDX-License-Identifier: MIT
# Members that somebody else has: the holder is named, nothing is written, not even with --force.
. "${0%/*}/../lib.sh"
requires_fuse

mkd 4 16M
create_pair md0
runs "assemble md0" assemble md0 --export=fuse d0 d1 || finish
ln -s d0 link
snap d0 d1 d2 d3
c="create md1 --export=none --level 0 --raid-devices 2"
refused "create over a member of a running array" "1 2" 'd0' 'md0' 'use|busy|running' -- \
	$c --run --force d0 d2
refused "create over it by a symlink" "1 2" 'link' 'md0' -- $c --run --force link d2
refused "assemble members that are in use" "1 2" 'd[01]' 'md0' -- assemble md1 --export=fuse d0 d1
refused "assemble under a name that is taken" "1 2" 'md0' 'running|already|busy|use' -- \
	assemble md0 --export=fuse d0 d1
refused "zero-superblock of a running array's member" "1 2" 'd0' 'md0' -- --zero-superblock d0
runs "examine of a running array's member" examine d0
same "members in use"
check "md0 still runs" [ -S "$STRAKE_RUNTIME_DIR/md0.sock" ]
runs "stop" stop md0
runs "the members are free again" assemble md0 --export=fuse d0 d1
runs "stop" stop md0

if [ "$(id -u)" = 0 ] && losetup -f >/dev/null 2>&1; then
	requires mkfs.ext4
	mkfs.ext4 -q d2
	mkdir mnt
	loop=$(losetup -f --show d2) || skip "no loop device"
	mount "$loop" mnt
	refused "mounted device" "1 2" "$loop" "$T/mnt|mount" -- $c --run --force "$loop" d3
	umount mnt
	losetup -d "$loop"
	check "mounted device: its file system is clean" fsck.ext4 -fn d2
	check "mounted device: the other member has no superblock" sh -c "! '$STRAKE' examine d3"
fi
finish
