#!/bin/sh
# SPDX-License-Identifier: MIT
# Somebody detaches the array's loop device and the kernel gives its number to another file: nothing
# that strake does may touch that device any more.
. "${0%/*}/../lib.sh"
requires_fuse
requires_loops
requires losetup blockdev

name=s$$
link=/dev/md/$name
mkd 2 32M
truncate -s 24M theirs
"$PATTERN" write theirs 9 || exit 1
cp theirs before
runs "create" create $name --level 0 --raid-devices 2 --export=none d0 d1
runs "assemble" assemble $name --export=loop d0 d1 || finish
node=$(readlink -f $link)
printf 'label: dos\nsize=8M\n' | sfdisk -q $link >said 2>&1
check "a partition" until_true 10 [ -b ${link}p1 ]
runs "partprobe" partprobe $name
losetup -d "$node"
until_true 5 [ ! -e "/sys/block/${node#/dev/}/loop" ]
losetup "$node" theirs || { echo "not ok - cannot take the device over" && exit 1; }
ahead=$(blockdev --getra "$node")

refused "read-ahead" "1" "$name" 'detached' -- readahead $name 1M
check "their read-ahead is as it was" [ "$(blockdev --getra "$node")" = "$ahead" ]
refused "partprobe" "1" "$name" 'detached' -- partprobe $name
runs "detail" detail $name
runs "stop" stop $name
check "their device is still attached" [ "$(losetup -nO BACK-FILE "$node")" = "$T/theirs" ]
check "the links are gone" sh -c "! ls -d $link ${link}p1"
check "the array is gone" [ ! -e "$STRAKE_RUNTIME_DIR/$name.sock" ]
losetup -d "$node"
check "their data is as it was" cmp theirs before

# With nobody on the device, stop goes through too.
runs "assemble again" assemble $name --export=loop d0 d1 || finish
losetup -d "$(readlink -f $link)"
runs "stop without its device" stop $name
check "nothing left" nothing_left $name
finish
