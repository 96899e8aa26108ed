#!/bin/sh
# SPDX-License-Identifier: MIT
# The array as a block device: links, partitions, read-ahead, stop that refuses while mounted.
. "${0%/*}/../lib.sh"
requires_fuse
requires_loops
requires sfdisk mkfs.ext4 blockdev

name=t$$
link=/dev/md/$name
mkd 2 48M
runs "create" create $name --level 0 --chunk 64 --raid-devices 2 --export=none d0 d1
runs "assemble" assemble $name --export=loop d0 d1 || finish
check "the link is a block device" [ -b "$link" ]
size=$((2 * 47 * 1048576))
check "size" [ "$(blockdev --getsize64 $link)" = $size ]
check "read-ahead: two full stripes" [ "$(blockdev --getra $link)" = $((2 * 2 * 128)) ]
check "write" "$PATTERN" write $link 1
check "read" "$PATTERN" verify $link 1
runs "status" status
check "status: the array" grep -q "^$name : active raid0" "$T/out"

# Partitions appear by themselves after the table is rewritten, and on partprobe.
printf 'label: dos\nsize=20M\nsize=20M\n' >table
sfdisk -q $link <table >said 2>&1
check "sfdisk" [ $? = 0 ]
check "its partitions appear by themselves" until_true 10 [ -b ${link}p2 ] || explain said
runs "partprobe" partprobe $name
check "the first partition" [ "$(blockdev --getsize64 ${link}p1)" = 20971520 ]
runs "detail --json" detail --json $name
check "detail names the partition" grep -q "${link}p2" "$T/out"
printf 'label: gpt\nsize=30M\n' >table
sfdisk -q --wipe always $link <table >said 2>&1
check "a new table" [ $? = 0 ]
runs "partprobe" partprobe $name
check "the new partition" until_true 10 [ "$(blockdev --getsize64 ${link}p1)" = 31457280 ]
check "the old second one is gone" until_true 10 [ ! -e ${link}p2 ]

# A mounted partition holds the array.
check "mkfs" mkfs.ext4 -q ${link}p1
mkdir mnt
check "mount" mount ${link}p1 mnt
echo hello >mnt/file
refused "stop while mounted" "1 2" "$T/mnt" 'mount' -- stop $name
check "it still runs" grep -qx hello mnt/file
umount mnt
runs "stop" stop $name
check "nothing left" nothing_left $name
check "no partition link is left" sh -c "! ls -d ${link}p*"

# At start partitions are there at once.
runs "assemble again" assemble $name --export=loop d0 d1
check "the partition is there" [ -b ${link}p1 ]
check "its file system is clean" fsck.ext4 -fn ${link}p1
runs "stop" stop $name
check "nothing left" nothing_left $name

runs "read-ahead as told" assemble $name --export=loop --readahead=1M d0 d1
check "read-ahead as told" [ "$(blockdev --getra $link)" = 2048 ]
for pid in $(our_daemons); do kill -9 "$pid"; done
until_true 5 no_daemons
runs "assemble after kill -9" assemble $name --export=loop d0 d1
check "the file system is clean" fsck.ext4 -fn ${link}p1
runs "stop" stop $name
check "nothing left" nothing_left $name

runs "readonly" assemble $name --export=loop --readonly d0 d1
check "readonly: the device says so" [ "$(blockdev --getro $link)" = 1 ]
runs "stop" stop $name
finish
