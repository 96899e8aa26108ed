#!/bin/sh
# SPDX-License-Identifier: MIT
# However an array with redundancy ends, its record is right: clean after every end in order, and
# made whole again after a kill.
. "${0%/*}/../lib.sh"
requires_fuse

node=$STRAKE_RUNTIME_DIR/md0
state_in() { "$STRAKE" examine "$1" | sed -n 's/.* State : //p' | head -n 1; }
is_state() { [ "$(state_in "$1")" = "$2" ]; }
both() { is_state d0 "$1" && is_state d1 "$1"; }
# writing SEED COMMAND…: while the start of the array is written again and again.
writing() {
	writing_seed=$1
	shift
	: >go_on
	while [ -e go_on ] && "$PATTERN" write "$node" "$writing_seed" 0 4096; do :; done &
	writer=$!
	until_true 5 "$@"
	writing_rc=$?
	rm go_on # the last write has to end: an array whose file is open does not stop
	wait $writer
	return $writing_rc
}
start() {
	runs "$1: assemble" assemble md0 --export=fuse d0 d1
	check "$1: write" "$PATTERN" write "$node" "$2"
	check "$1: marked active while it is written" writing "$2" both active
}
ends() {
	check "$1: the process ends" until_true 10 no_daemons
	check "$1: nothing left" nothing_left md0
	check "$1: clean" both clean
}

mkd 2 16M
runs "create" create md0 --level 1 --raid-devices 2 --assume-clean --export=none d0 d1
start "idle" 1
check "idle: clean by itself" until_true 10 both clean
check "idle: active again" "$PATTERN" write "$node" 2
check "idle: marked active again" writing 2 both active
runs "stop" stop md0
ends "stop"
for signal in TERM INT HUP; do
	start "SIG$signal" 3
	kill -$signal "$(daemon_pid md0)"
	ends "SIG$signal"
done
start "umount" 4
if [ "$(id -u)" = 0 ]; then umount "$node"; else fusermount3 -u "$node"; fi
ends "umount"

start "read-only" 5
runs "read-only" readonly md0
check "read-only: clean" both clean
snap d0 d1
check "read-only: no write" sh -c "! '$PATTERN' write '$node' 6 0 4096"
refused "read-only: fail" 1 'read-only' -- md0 --fail d1
refused "read-only: check" 1 'read-only' -- check md0
same "read-only"
runs "read-write" --readwrite md0
check "read-write: write" "$PATTERN" write "$node" 6
runs "read-write: stop" stop md0
ends "read-write"

start "kill" 7
pid=$(daemon_pid md0)
check "kill: write" "$PATTERN" write "$node" 7 0 4096
kill -9 "$pid"
until_true 10 no_daemons
check "kill: active on the members" both active
run stop md0
runs "kill: assemble" assemble md0 --export=fuse d0 d1
run wait md0
check "kill: content" "$PATTERN" verify "$node" 7
runs "kill: check" check md0 --wait
check "kill: no mismatch" grep -q 'no mismatch' "$T/out"
runs "kill: stop" stop md0
ends "kill"
runs "started for reading: assemble" assemble md0 --readonly --export=fuse d0 d1
snap d0 d1
refused "started for reading: read-write" 1 'assemble it without --readonly' -- readwrite md0
runs "started for reading: stop" stop md0
same "started for reading"

if [ "$(id -u)" = 0 ] && losetup -f >/dev/null 2>&1; then
	name=closing$$
	runs "block device: assemble" assemble $name d0 d1
	check "block device: mkfs" mke2fs -q -t ext4 /dev/md/$name
	mkdir m
	check "block device: mount" mount /dev/md/$name m
	refused "block device: read-only while mounted" 1 'unmount' -- readonly $name
	check "block device: it takes writes still" sh -c 'echo a >m/a && sync m/a'
	umount m
	runs "block device: read-only" readonly $name
	check "block device: the kernel knows" [ "$(blockdev --getro /dev/md/$name)" = 1 ]
	runs "block device: read-write" readwrite $name
	check "block device: the kernel knows" [ "$(blockdev --getro /dev/md/$name)" = 0 ]
	check "block device: mount again" mount /dev/md/$name m
	check "block device: content" [ "$(cat m/a)" = a ]
	umount m
	runs "block device: stop" stop $name
	check "block device: clean" both clean
fi
finish
