#!/bin/sh
# SPDX-License-Identifier: MIT
# Arrays whose members are arrays: --scan brings them up from below, stop --scan takes them down
# from above, and an array that is still missing one that comes later is not started degraded.
. "${0%/*}/../lib.sh"
requires_fuse

node() {
	"$STRAKE" detail --json "$1" | sed -n 's/.*"node": "\([^"]*\)".*/\1/p' | head -1
}

# RAID 5 over two mirrors and a file, in one folder, so that a scan finds all of it.
mkdir disks
for disk in 0 1 2 3; do truncate -s 32M disks/d$disk; done
truncate -s 30M disks/d4
runs "a mirror" create md1 --level 1 --raid-devices 2 --export=fuse --homehost h disks/d0 disks/d1
runs "another" create md2 --level 1 --raid-devices 2 --export=fuse --homehost h disks/d2 disks/d3
runs "parity over both and a file" create md3 --level 5 --raid-devices 3 --export=fuse \
	--homehost h "$STRAKE_RUNTIME_DIR/md1" "$STRAKE_RUNTIME_DIR/md2" disks/d4
"$PATTERN" write "$STRAKE_RUNTIME_DIR/md3" 7
check "content" "$PATTERN" verify "$STRAKE_RUNTIME_DIR/md3" 7

refused "a member that is used by another array stops for nobody" 1 'md1' 'md3' -- stop md1
check "all run on" [ "$("$STRAKE" status | grep -c ' : active')" = 3 ]
runs "all stop, in the right order" stop --scan
check "nothing runs" [ "$("$STRAKE" status | grep -c ' : active')" = 0 ]

runs "a scan finds them level by level" assemble --scan --export=fuse disks
check "all run" [ "$("$STRAKE" status | grep -c ' : active')" = 3 ]
check "the upper one is complete" sh -c "'$STRAKE' status | grep -q '\[3/3\] \[UUU\]'"
check "content after the scan" "$PATTERN" verify "$STRAKE_RUNTIME_DIR/md3" 7
runs "stop" stop --scan

# What is really missing is missing: then it starts degraded, as with mdadm.
mv disks/d4 gone
runs "a scan without one disk" assemble --scan --export=fuse disks
check "the upper one is degraded" sh -c "'$STRAKE' status | grep -q '\[3/2\] \[UU_\]'"
check "content, degraded" "$PATTERN" verify "$STRAKE_RUNTIME_DIR/md3" 7
runs "stop" stop --scan
check "nothing left" nothing_left md1

# Mirrors over stripes, as block devices.
requires_loops
mkd 4 16M
runs "a stripe" create md1 --level 0 --raid-devices 2 --homehost h d0 d1
runs "another stripe" create md2 --level 0 --raid-devices 2 --homehost h d2 d3
runs "a mirror over both" create md3 --level 1 --raid-devices 2 --homehost h \
	"$(node md1)" "$(node md2)"
"$PATTERN" write "$(node md3)" 7
runs "stop them all" stop --scan
runs "bring them all back" assemble --scan .
check "content of 0+1" "$PATTERN" verify "$(node md3)" 7
runs "stop them all again" stop --scan
finish
