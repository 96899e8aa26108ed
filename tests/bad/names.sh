#!/bin/sh
# SPDX-License-Identifier: MIT
# The array's name was forgotten: the first member stands in its place.
. "${0%/*}/../lib.sh"

mkd 4 16M
ln -s d0 link
snap d0 d1 d2 d3
first='name the array first'
refused "create" 2 "'d0'" "$first: 'strake create md0" -- create -l0 d0 d1 d2
refused "create, mdadm's grammar" 2 "'d0'" "$first" -- --create --level=0 --raid-devices=2 d0 d1 d2
refused "create, by a path" 2 'd0' "$first" -- create -l0 "$T/d0" d1 d2
refused "create, by a link" 2 'link' "$first" -- create -l0 link d1 d2
refused "build" 2 "'d0'" "$first: 'strake build md0" -- build -l0 -n2 d0 d1 d2
check "nothing was started" nothing_left d0
same "no name"
runs "a name that is no file" create md0 -l0 --export=none d0 d1
if [ "$(id -u)" = 0 ] && loop=$(losetup -f --show d2 2>/dev/null); then
	refused "a block device" 2 "$loop" "$first" -- create -l0 "$loop" d3
	losetup -d "$loop"
fi
finish
