#!/bin/sh
# SPDX-License-Identifier: MIT
# Arrays with redundancy whose members are stale, foreign, damaged, cut or dirty: what assemble says
# and does, and that nothing is written where it refuses.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0

# make LEVEL N [ARGUMENT…]: a running array over d0 … with its content of seed 1.
make() {
	make_level=$1
	make_n=$2
	shift 2
	mkd "$make_n" 8M
	i=0
	list=
	while [ $i -lt "$make_n" ]; do
		list="$list d$i"
		i=$((i + 1))
	done
	runs "create level $make_level" create md0 --level "$make_level" --raid-devices "$make_n" --run \
		--export=fuse "$@" $list && "$PATTERN" write "$node" 1 >/dev/null
}

event_count() {
	mdadm --examine "$1" | awk '$1 == "Events" { print $3 }'
}

rejects() { # rejects WHAT WORDS: a line of the last command says so
	check "$1" grep -qE "$2" "$T/err"
}

requires mdadm

# Stale members -----------------------------------------------------------------------------------
make 1 3
runs "stop" stop md0
runs "start without d2" assemble md0 --export=fuse --run d0 d1
rejects "it says how many are there" 'with 2 drives \(out of 3\)'
"$PATTERN" write "$node" 2 >/dev/null || not_ok "write"
runs "stop" stop md0
check "d2 has missed something" [ "$(event_count d2)" -lt "$(event_count d0)" ]
snap d0 d1 d2
refused "the stale member alone" 1 'need all 3' 'run' -- assemble md0 --export=fuse d2
same "the stale member alone"
runs "all three" assemble md0 --readonly --export=fuse d2 d1 d0
rejects "the stale member is named" 'd2.*events'
rejects "and left out" 'with 2 drives \(out of 3\)'
check "content of the newer members" "$PATTERN" verify "$node" 2
check "the stale member is free" flock -n d2 true
run detail --test md0
check "detail --test: degraded" [ $rc -eq 1 ]
runs "stop" stop md0
same "all three, read-only"
runs "the stale one, insisted" assemble md0 --readonly --run --export=fuse d2
check "content of the stale member" "$PATTERN" verify "$node" 1
runs "stop" stop md0
same "the stale one, insisted"

# --no-degraded, and members that are found
refused "no-degraded" 1 'no-degraded' -- assemble md0 --no-degraded --run --export=fuse d0 d1
runs "members found are all there are" assemble md0 --readonly --export=fuse --scan-in d1 --scan
rejects "it says how many are there" 'with 1 drive \(out of 3\)'
run stop --scan

# Two members of a RAID 5 fail: the newest of them is taken back only by force -----------------------
make 5 3 --chunk 64
runs "stop" stop md0
runs "start without d2" assemble md0 --export=fuse --run d0 d1
"$PATTERN" write "$node" 3 0 65536 >/dev/null || not_ok "write"
runs "stop" stop md0
snap d0 d1 d2
refused "d1 is lost" 1 'not enough' 'd2' 'force' -- assemble md0 --export=fuse d0 d2
refused "cat follows the same rule" 1 'not enough' -- cat d0 d2
same "d1 is lost"
runs "by force" assemble md0 --force --run --export=fuse d0 d2
rejects "it says what is forced" 'forcing event count in d2 \(slot 2\) from [0-9]+ up to [0-9]+'
check "the rest of the content" "$PATTERN" verify "$node" 1 131072 1048576
runs "stop" stop md0
check "the event count was written" [ "$(event_count d2)" -ge "$(event_count d0)" ]

# Dirty and degraded --------------------------------------------------------------------------------
make 5 3 --chunk 64
pid=$(daemon_pid md0)
"$PATTERN" write "$node" 1 0 65536 >/dev/null
kill -9 "$pid"
until_true 5 sh -c "! kill -0 $pid"
run stop md0
if mdadm --examine d0 | grep -q 'State : active'; then
	snap d0 d1 d2
	refused "dirty and degraded" 1 'dirty degraded' 'force' -- assemble md0 --run --export=fuse d0 d1
	refused "cat of dirty and degraded" 1 'dirty degraded' 'force' -- cat --run d0 d1
	same "dirty and degraded"
	cp d0 e0
	cp d1 e1
	runs "by force" assemble md0 --force --export=fuse e0 e1
	rejects "it says what is forced" "marking array as 'clean' in e[01]"
	check "content" "$PATTERN" verify "$node" 1
	runs "stop" stop md0
	check "clean now" sh -c "mdadm --examine e0 | grep -q 'State : clean'"
	runs "dirty and complete" assemble md0 --export=fuse d0 d1 d2
	check "content" "$PATTERN" verify "$node" 1
	resynced() { "$STRAKE" detail md0 | grep -q ' State : clean $'; }
	check "it is resynced" until_true 20 resynced
	runs "stop" stop md0
	check "clean again" sh -c "mdadm --examine d2 | grep -q 'State : clean'"
else
	not_ok "the array was not active when it was killed"
fi

# A damaged bitmap ------------------------------------------------------------------------------------
make 1 2 --bitmap=internal
runs "stop" stop md0
for f in d0 d1; do
	head -c 4096 /dev/urandom | dd of=$f bs=4096 seek=2 conv=notrunc status=none
done
refused "examine a damaged bitmap" 1 'bitmap' -- examine --examine-bitmap d0
runs "a damaged bitmap is no obstacle" assemble md0 --export=fuse d0 d1
check "content" "$PATTERN" verify "$node" 1
check "all of it counts as changed, and is resynced" until_true 20 resynced
runs "stop" stop md0
runs "the bitmap is made anew" examine --examine-bitmap d0
refused "no bitmap" 1 'no bitmap|superblock' -- examine --examine-bitmap "$PATTERN"

# Wrong devices ---------------------------------------------------------------------------------------
truncate -s 8M x0 x1
runs "another array" create md1 --level 1 --raid-devices 2 --export=none x0 x1
snap d0 d1 x0 x1
refused "members of two arrays" 1 'two different arrays' 'x1' -- assemble md0 --export=fuse d0 x1
cp d0 twin
refused "a copy of a member" "0 1" 'twin|d0' -- assemble md0 --readonly --export=fuse d0 d1 twin
run stop md0
same "wrong devices"
truncate -s 5M d1
run assemble md0 --run --export=fuse d0 d1
check "a member that was cut: refused, or left out and named" grep -q 'd1' "$T/err"
run stop md0
check "nothing runs" nothing_left md0
finish
