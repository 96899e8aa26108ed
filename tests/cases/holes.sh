#!/bin/sh
# SPDX-License-Identifier: MIT
# An array never comes up with holes: chunks that none of its members holds. That a member is named
# in enough superblocks, or that their number is right, is not enough: it must be whole. Tried with
# members whose rebuild did not end, copies of one chunk that are all gone, and every way to insist.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0

# never WHAT MEMBER…: no way of asking starts it or reads it, and nothing is written.
never() {
	what=$1
	shift
	snap "$@"
	for how in "" --run --force "--run --force" "--readonly --run"; do
		run assemble md0 --export=fuse $how "$@"
		if [ $rc -eq 0 ]; then
			not_ok "$what: assemble $how: it started"
			run stop md0
		else
			ok "$what: assemble $how: refused"
		fi
		check "$what: assemble $how: it is told why" grep -qiE 'not enough|missing|rebuil|recover|spare' "$T/err"
	done
	timeout 20 "$STRAKE" cat --run --force "$@" >content 2>"$T/err"
	rc=$?
	check "$what: cat: exit code" [ $rc -eq 1 ]
	check "$what: cat gives nothing" [ ! -s content ]
	same "$what"
}

# half_built LEVEL COUNT: e0 has taken the place of d0, and holds the first part of it.
half_built() {
	rm -f d? e0
	mkd "$2" 32M
	truncate -s 32M e0
	runs "raid $1: create" create md0 --level "$1" --raid-devices "$2" --assume-clean --export=fuse \
		$(ls d?) || give_up "create"
	check "raid $1: write" "$PATTERN" write "$node" 1
	runs "raid $1: slowly" speed md0 --min 1K --max 4M
	runs "raid $1: a rebuild begins" md0 --fail d0 --remove d0 --add e0
	sleep 1
	runs "raid $1: stop in the middle" stop md0
	check "raid $1: it is half built" sh -c "'$STRAKE' examine e0 | grep -q 'Recovery Offset'"
}

half_built 1 2
never "raid 1: the half-built alone" e0
half_built 5 3
never "raid 5: one and the half-built" d1 e0
never "raid 5: the other and the half-built" e0 d2
runs "raid 5: the two that are whole" assemble md0 --run --readonly --export=fuse d1 d2
check "raid 5: content" "$PATTERN" verify "$node" 1
runs "raid 5: stop" stop md0
runs "raid 5: all three" assemble md0 --readonly --export=fuse d1 d2 e0
check "raid 5: content" "$PATTERN" verify "$node" 1
run detail --test md0
check "raid 5: it is degraded" [ $rc -eq 1 ]
runs "raid 5: stop" stop md0
half_built 6 4
never "raid 6: one and the half-built" d1 e0
runs "raid 6: two and the half-built" assemble md0 --run --readonly --export=fuse d1 d2 e0
check "raid 6: content" "$PATTERN" verify "$node" 1
runs "raid 6: stop" stop md0
half_built 10 4
never "raid 10: no whole copy of the first chunk" e0 d2 d3
never "raid 10: one copy of the first chunk, none of the second" d1 e0
runs "raid 10: a copy of each" assemble md0 --run --readonly --export=fuse d1 e0 d2
check "raid 10: content" "$PATTERN" verify "$node" 1
runs "raid 10: stop" stop md0

# Spares are many, and hold nothing.
rm -f d? e0
mkd 5 8M
runs "spares: create" create md0 --level 5 --raid-devices 3 --spare-devices 2 --assume-clean \
	--export=fuse d0 d1 d2 d3 d4
check "spares: write" "$PATTERN" write "$node" 1
runs "spares: stop" stop md0
never "one member and two spares" d0 d3 d4
never "spares alone" d3 d4

# The running array: the last that can be given up is, the next is not.
rm -f d?
mkd 4 8M
runs "running: create" create md0 --level 10 --raid-devices 4 --assume-clean --export=fuse d0 d1 d2 d3
check "running: write" "$PATTERN" write "$node" 1
runs "running: d0 fails" md0 --fail d0
refused "running: the other copy" 2 'd1' -- md0 --fail d1
runs "running: one of the other pair" md0 --fail d3
refused "running: and its other" 2 'd2' -- md0 --fail d2
check "running: content" "$PATTERN" verify "$node" 1
run detail --test md0
check "running: degraded" [ $rc -eq 1 ]
runs "running: stop" stop md0
check "nothing runs" nothing_left md0
finish
