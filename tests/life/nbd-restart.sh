#!/bin/sh
# SPDX-License-Identifier: MIT
# No client ends an array that is exported by NBD: whatever happens to nbdkit, strake's own process
# keeps the members, the name and the socket, and starts another one.
. "${0%/*}/../lib.sh"
requires nbdkit nbdinfo nbdcopy python3

client=$TESTS/life/nbd_client.py
uri="nbd+unix:///?socket=$T/nbd"

# The array's process (of `detail`), and the nbdkit that it keeps.
keeper() { daemon_pid "$1"; }
nbdkit_of() { cat "/proc/$1/task/$1/children"; }
has_other_nbdkit() { [ -n "$(nbdkit_of "$keeper")" ] && [ "$(nbdkit_of "$keeper")" != "$1 " ]; }
readable() { nbdcopy "$uri" - | "$PATTERN" verify - "$1" 0 "$size"; }

# kill_nbdkit SIGNAL: and wait until it is another one.
kill_nbdkit() {
	old=$(nbdkit_of "$keeper" | tr -d ' ')
	[ -n "$old" ] && kill "-$1" "$old" && until_true 10 has_other_nbdkit "$old"
}

start() {
	runs "$1" assemble md0 "--export=nbd:$T/nbd" d0 d1 || finish
	keeper=$(keeper md0)
	check "$1: the array's process is the one that keeps nbdkit" [ -n "$(nbdkit_of "$keeper")" ]
}

mkd 2 16M
create_pair md0 --chunk 64
size=$((2 * 15 * 1048576))
truncate -s $size whole
"$PATTERN" write whole 3
start "assemble"
check "neither process keeps the folder in use" [ \
	"$(readlink "/proc/$keeper/cwd" "/proc/$(nbdkit_of "$keeper" | tr -d ' ')/cwd" | sort -u)" = / ]
check "write" nbdcopy whole "$uri"
refused "a member in use" "1 2" 'running array md0' -- assemble md1 "--export=nbd:$T/other" d0 d1
refused "another array of the name" "1 2" 'md0' -- assemble md0 "--export=nbd:$T/other" d0 d1

for signal in ABRT KILL SEGV; do
	check "SIG$signal: there is another nbdkit" kill_nbdkit $signal
	run status
	check "SIG$signal: status lists the array" grep -q '^md0 :' "$T/out"
	check "SIG$signal: the array's process is the same" [ "$(keeper md0)" = "$keeper" ]
	check "SIG$signal: content" readable 3
done
check "a client that waits meanwhile is served" sh -c "
	kill -ABRT $(nbdkit_of "$keeper") && nbdinfo --size '$uri'"
until_true 10 has_other_nbdkit ""
kill -ABRT $(nbdkit_of "$keeper")
runs "stop while there is none" stop md0
check "stop while there is none: nothing left" nothing_left md0
check "stop while there is none: the socket is gone" [ ! -e nbd ]
"$STRAKE" cat --length $size d0 d1 | "$PATTERN" verify - 3 0 $size
check "what was written before is there" [ $? = 0 ]

# The clients that do it: nbdkit 1.32 does not survive a few dozen of them.
start "hang up"
echo "# rounds in which nbdkit had just died: $(python3 "$client" "$T/nbd" hang-up 300)"
check "hang up: the array's process lives" kill -0 "$keeper"
run status
check "hang up: status lists the array" grep -q '^md0 :' "$T/out"
# The last of them may end nbdkit under the next client, who then connects again.
check "hang up: content" until_true 20 readable 3
# An answer is lost when its nbdkit dies: stop asks again.
for round in 1 2 3 4 5 6 7 8; do
	python3 "$client" "$T/nbd" hang-up 300 >lost 2>&1 &
	clients=$!
	sleep 0.$round
	runs "stop amid clients that hang up, round $round" stop md0
	kill $clients
	wait $clients
	check "stop amid clients that hang up, round $round: nothing left" nothing_left md0
	[ $round = 8 ] || start "round $round"
done

# Ends of the array's own process.
for signal in TERM INT HUP KILL; do
	start "SIG$signal to the array's process"
	nbdkit=$(nbdkit_of "$keeper" | tr -d ' ')
	kill -$signal "$keeper"
	check "SIG$signal to the array's process: both end" until_true 10 no_daemons
	check "SIG$signal to the array's process: nothing left" nothing_left md0
	check "SIG$signal to the array's process: the NBD socket is gone" [ ! -e nbd ]
done
start "SIGTERM to nbdkit"
kill $(nbdkit_of "$keeper")
check "SIGTERM to nbdkit: both end" until_true 10 no_daemons
check "SIGTERM to nbdkit: nothing left" nothing_left md0

# Superblocks are read again, and what the user said at the start still holds.
start "superblocks gone"
dd if=d1 of=saved bs=64K count=1 status=none
dd if=/dev/zero of=d1 bs=64K count=1 conv=notrunc status=none
kill -ABRT $(nbdkit_of "$keeper")
check "superblocks gone: the array ends" until_true 20 no_daemons
check "superblocks gone: nothing left" nothing_left md0
check "superblocks gone: the NBD socket is gone" [ ! -e nbd ]
dd if=saved of=d1 conv=notrunc status=none
runs "without superblocks: build" build md0 --level 0 --raid-devices 2 --chunk 64 \
	"--export=nbd:$T/nbd" d0 d1
keeper=$(keeper md0)
nbdcopy "$uri" before
check "without superblocks: another nbdkit" kill_nbdkit ABRT
nbdcopy "$uri" after
check "without superblocks: content" cmp before after
runs "without superblocks: stop" stop md0
runs "read-only: assemble" assemble md0 --readonly "--export=nbd:$T/nbd" d0 d1
keeper=$(keeper md0)
check "read-only: another nbdkit" kill_nbdkit ABRT
check "read-only: is so still" nbdinfo --is readonly "$uri"
check "read-only: content" readable 3
runs "read-only: stop" stop md0

# A flush has failed: that stays so, whoever serves.
if [ -w /dev/fuse ] && command -v fusermount3 >/dev/null; then
	truncate -s 16M d2
	runs "broken: the member" build low --level linear --raid-devices 1 --force --export=fuse d2
	runs "broken: build" build md0 --level 0 --raid-devices 2 --chunk 64 "--export=nbd:$T/nbd" \
		d0 "$STRAKE_RUNTIME_DIR/low"
	keeper=$(keeper md0)
	check "broken: a flush at first" [ "$(python3 "$client" nbd flush 0)" = 0 ]
	kill -9 "$(keeper low)"
	nbdcopy --flush whole "$uri" 2>/dev/null
	check "broken: a flush fails" [ "$(python3 "$client" nbd flush 0)" = 5 ]
	check "broken: another nbdkit" kill_nbdkit ABRT
	runs "broken: detail" detail --json md0
	check "broken: is so still" [ "$(json state)" = broken ]
	check "broken: a flush fails still" [ "$(python3 "$client" nbd flush 0)" = 5 ]
	runs "broken: stop" stop md0
	runs "broken: stop the dead member" stop low
fi

# A write that nbdkit had begun ends before there is another one: it must not land on newer data.
command -v nbdfuse >/dev/null && [ -w /dev/fuse ] && [ "$(id -u)" = 0 ] &&
	losetup -f >/dev/null 2>&1 || {
	echo "# not looked at: slow members: needs nbdfuse, root and loop devices"
	finish
}
mkdir slow
nbdkit -f -U "$T/delay" memory 16M --filter=delay delay-write=3 &
delay=$!
until_true 10 [ -S delay ]
nbdfuse slow/file --unix "$T/delay" &
fuse=$!
until_true 10 [ -e slow/file ] || give_up "nbdfuse does not start"
loop=$(losetup -f --show slow/file) || give_up "no loop device"
RUN_SECONDS=60
runs "slow: build" build md0 --level 0 --raid-devices 2 --chunk 64 "--export=nbd:$T/nbd" \
	"$loop" d1
keeper=$(keeper md0)
python3 "$client" "$T/nbd" unfinished 0 >said &
unfinished=$!
until_true 10 grep -q sent said
sleep 0.5
begin=$(date +%s%N)
kill -ABRT $(nbdkit_of "$keeper")
check "slow: another nbdkit serves" nbdinfo --size "$uri"
ms=$((($(date +%s%N) - begin) / 1000000))
check "slow: but not before the write is over (it took $ms ms)" [ $ms -ge 2000 ]
wait $unfinished
runs "slow: stop" stop md0
losetup -d "$loop"
umount slow
wait $fuse
kill $delay
finish
