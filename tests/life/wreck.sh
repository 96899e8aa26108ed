#!/bin/sh
# SPDX-License-Identifier: MIT
# What a killed process leaves is named by status, and stop clears it away.
. "${0%/*}/../lib.sh"
requires_fuse

kill_daemons() {
	for pid in $(our_daemons); do kill -9 "$pid"; done
	until_true 5 no_daemons
}

nothing_at_all() {
	nothing_left "$1" && [ -z "$(ls -A "$STRAKE_RUNTIME_DIR")" ]
}

mkd 2 16M
create_pair md0 --chunk 64
for export in fuse "nbd:$T/nbd"; do
	runs "$export: assemble" assemble md0 "--export=$export" d0 d1 || finish
	kill_daemons
	runs "$export: status" status
	check "$export: status: mdstat's text is without it" sh -c "! grep -q md0 '$T/out'"
	check "$export: status says it in one line" sh -c "[ \$(wc -l <'$T/err') = 1 ] &&
		grep -q 'md0: its process died.*assemble md0.*stop md0' '$T/err'"
	runs "$export: status --json" status --json
	check "$export: status --json lists it" sh -c "tr -d ' \n' <'$T/out' | grep -q '\"dead\":\[\"md0\"\]'"
	refused "$export: detail" 1 'md0' 'died' 'stop md0' -- detail md0
	refused "$export: partprobe" 1 'md0' 'died' 'stop md0' -- partprobe md0
	runs "$export: stop" stop md0
	check "$export: stop says what it did" grep -q "md0: its process had died; removed .*/md0.sock" "$T/err"
	[ "$export" = fuse ] || check "$export: the NBD socket is among it" grep -qF "$T/nbd" "$T/err"
	check "$export: the NBD socket is gone" [ ! -e "$T/nbd" ]
	check "$export: nothing is left" nothing_at_all md0
	runs "$export: status afterwards" status
	check "$export: status is silent about it" [ ! -s "$T/err" ]
	refused "$export: a second stop" 1 'md0' 'no such array' -- stop md0
done

runs "two arrays: assemble" assemble md0 --export=fuse d0 d1
kill_daemons
mv d0 a0
mv d1 a1
mkd 2 16M
create_pair md1
runs "two arrays: assemble" assemble md1 --export=fuse d0 d1
runs "stop --scan" stop --scan
check "stop --scan: the living" grep -q 'stopped md1' "$T/err"
check "stop --scan: the dead" grep -q 'md0: its process had died' "$T/err"
check "stop --scan: nothing is left" nothing_at_all md0

# The link to an NBD socket goes with the array.
runs "NBD: assemble" assemble md1 "--export=nbd:nbd" d0 d1
runs "NBD: stop" stop md1
check "NBD: nothing is left" nothing_at_all md1

# A socket of somebody else in the place of ours stays.
runs "NBD: assemble" assemble md1 "--export=nbd:$T/nbd" d0 d1
kill_daemons
rm nbd
echo mine >nbd
runs "NBD: stop of a dead one" stop md1
check "NBD: what is not ours stays" grep -qx mine nbd
check "NBD: nothing else is left" nothing_at_all md1
rm nbd

if [ "$(id -u)" != 0 ] || ! losetup -f >/dev/null 2>&1; then
	echo "# not looked at: block devices: needs root and loop devices"
	finish
fi
name=w$$
runs "loop: assemble" assemble $name --export=loop d0 d1 || finish
loop=$(readlink -f /dev/md/$name)
kill_daemons
runs "loop: stop" stop $name
check "loop: the link is named" grep -qF "/dev/md/$name" "$T/err"
check "loop: nothing is left" nothing_at_all $name

command -v mkfs.ext4 >/dev/null || finish
runs "mounted: assemble" assemble $name --export=loop d0 d1 || finish
check "mounted: mkfs" mkfs.ext4 -q /dev/md/$name
mkdir mnt
check "mounted: mount" mount "$(readlink -f /dev/md/$name)" mnt
kill_daemons
runs "mounted: stop" stop $name
check "mounted: says what is still mounted" grep -q "still mounted on $T/mnt.*umount" "$T/err"
umount mnt
check "mounted: nothing is left" nothing_at_all $name
finish
