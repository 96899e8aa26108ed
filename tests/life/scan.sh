#!/bin/sh
# SPDX-License-Identifier: MIT
# assemble --scan among stray members, and an array by its name alone.
. "${0%/*}/../lib.sh"
requires_fuse

mkd 2 16M
create_pair md0 --homehost h --name good
mkdir dir stray
mv d0 d1 dir
mkd 2 16M
create_pair md0 --homehost h --name half
mv d0 stray
cp stray/d0 dir/half

runs "one whole, one stray: exit code as mdadm's" assemble --scan --export=fuse dir
check "the stray one is told" grep -q 'half.*slot 1' "$T/err"
check "the whole one runs" [ -f "$STRAKE_RUNTIME_DIR/good" ]
runs "again: the whole one runs already" assemble --scan --export=fuse dir
check "it is left alone" grep -q 'running already' "$T/err"
runs "stop" stop good
refused "only a stray one" 1 'half' 'slot 1' -- assemble --scan --export=fuse stray
refused "the stray one asked for by name" 1 'half' 'slot 1' -- assemble --name half --export=fuse dir
refused "nothing there" 1 'no arrays found' -- assemble --scan --export=fuse d1.none
check "nothing left" nothing_left good

# "assemble NAME" alone searches /proc/partitions for it.
name=nobody$$
refused "an array by its name that is nowhere" 1 "called $name" 'members' -- assemble $name
refused "the same in mdadm's words" 1 "called $name" -- -A /dev/md/$name
requires_loops
mkd 2 16M
runs "create" create md0 --level 0 --raid-devices 2 --export=none --homehost h --name $name d0 d1
a=$(losetup -f --show d0) && b=$(losetup -f --show d1) || give_up "loop devices"
until_true 5 grep -qw "${a#/dev/}" /proc/partitions
runs "an array by its name" assemble $name --export=fuse
check "it runs" [ -f "$STRAKE_RUNTIME_DIR/$name" ]
runs "stop" stop $name
losetup -d "$a"
losetup -d "$b"
finish
