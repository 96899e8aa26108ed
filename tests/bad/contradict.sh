#!/bin/sh
# SPDX-License-Identifier: MIT
# Superblocks of arrays with redundancy that are right each, checksum and all, and do not fit each
# other, their device or this program: features nobody here knows, a bitmap larger than its space,
# members that disagree. Refused or left out, with the reason, and nothing is written.
. "${0%/*}/../lib.sh"
requires_fuse

make() { # make LEVEL COUNT [OPTION…]
	level=$1 count=$2
	shift 2
	rm -f d? good?
	mkd "$count" 8M
	run create md0 --level "$level" --raid-devices "$count" --run --export=none "$@" $(ls d?)
	[ $rc -eq 0 ] || give_up "create level $level: $(cat "$T/err")"
	for file in d?; do cp "$file" "good${file#d}"; done
	at=$(super_at d0 1.2)
}

again() {
	for file in good?; do cp "$file" "d${file#good}"; done
}

# all WHAT FIELD WIDTH VALUE WORDS: in all members, so that they agree; refused, even if insisted.
all() {
	again
	for file in d?; do "$SUPEREDIT" $file "$at" "$2" "$3" "$4"; done
	snap d?
	for how in "" "--run" "--force --run"; do
		refused "level $level: $1 $how" 1 "$5" -- assemble md0 $how --export=fuse $(ls d?)
		[ ! -S "$STRAKE_RUNTIME_DIR/md0.sock" ] || run stop md0
	done
	run cat --run --force $(ls d?)
	check "level $level: $1: cat" [ $rc -eq 1 ]
	run examine d0
	check "level $level: $1: examine" [ $rc -le 1 ]
	same "level $level: $1"
}

# one WHAT FIELD WIDTH VALUE: in d1 alone: refused, or it is left out; named in any case.
one() {
	again
	"$SUPEREDIT" d1 "$at" "$2" "$3" "$4"
	snap d?
	run assemble md0 --readonly --run --export=fuse $(ls d?)
	check "level $level: $1: no crash" [ $rc -le 1 ]
	check "level $level: $1: named" grep -q 'd1' "$T/err" || explain "$T/err"
	if [ $rc -eq 0 ]; then
		run detail --json md0
		check "level $level: $1: it is no member" sh -c "! grep -q '/d1\"' '$T/out'"
		run stop md0
	fi
	same "level $level: $1"
}

for set in "1 3" "5 3" "6 4" "10 4"; do
	make ${set% *} ${set#* } --bitmap=internal
	all "a feature that nobody knows" 8 4 0x2001 'feature|0x2000'
	all "another feature that nobody knows" 8 4 0x80000001 'feature'
	all "a journal" 8 4 0x200 'journal|feature'
	all "a reshape under way" 8 4 0x5 'reshape|feature'
	[ $level = 1 ] || all "a layout that does not exist" 76 4 77777 'layout'
	all "no slots" 92 4 0 'raid_disks|slots|members|devices'
	all "more slots than there can be" 92 4 100000 'raid_disks|slots|members|devices|100000'
	all "a device's size beyond the device" 80 8 0xffffffff 'size|sectors|space|room|device'
	one "other features than the others" 8 4 0x9
	one "another level than the others" 72 4 0
	one "another chunk than the others" 88 4 8
	one "fewer slots than the others" 92 4 2
	one "a slot that there is not" 258 2 77
	one "a data offset beyond the device" 128 8 0xfffffff0
	one "less space than the array needs" 136 8 64
	one "an own number that is somebody else's" 160 4 0
done

# Two that want one slot.
make 1 3
cp d0 copy
"$SUPEREDIT" copy "$at" 168 8 0x1234567890
snap d? copy
run assemble md0 --readonly --export=fuse d0 copy d1 d2
check "two in one slot: no crash" [ $rc -le 1 ]
check "two in one slot: named" grep -qE 'copy|d0' "$T/err" || explain "$T/err"
run stop md0
same "two in one slot"

# The bitmap: larger than the space in front of the data, and one over the superblock.
bitmap_in_all() { # WHAT FIELD WIDTH VALUE: in the bitmap superblock, which has no checksum
	again
	for file in d?; do
		printf "$4" | dd of=$file bs=1 seek=$((8192 + $2)) conv=notrunc status=none
	done
	snap d?
	run assemble md0 --readonly --export=fuse $(ls d?)
	check "$1: no crash" [ $rc -le 1 ]
	[ $rc -eq 0 ] || check "$1: reason" grep -qi 'bitmap' "$T/err"
	run stop md0
	run examine --examine-bitmap d0
	check "$1: examine: no crash" [ $rc -le 1 ]
	same "$1"
	# Writable: the bitmap is no guide, so all of the array counts as changed.
	run assemble md0 --export=fuse $(ls d?)
	[ $rc -eq 0 ] || check "$1: writable: reason" grep -qi 'bitmap' "$T/err"
	[ $rc -ne 0 ] || run wait md0
	run stop md0
}
make 1 2 --bitmap=internal
bitmap_in_all "a bitmap chunk of one sector: larger than its space" 52 4 '\0\002\0\0'
bitmap_in_all "a bitmap chunk of nothing" 52 4 '\0\0\0\0'
bitmap_in_all "a bitmap chunk that is no power of two" 52 4 '\001\060\0\0'
bitmap_in_all "a bitmap of a version to come" 4 4 '\143\0\0\0'
bitmap_in_all "a bitmap of another array" 8 4 'XXXX'
bitmap_in_all "a bitmap for an array of another size" 40 4 '\377\377\377\377'
all "a bitmap over the superblock" 96 4 0 'bitmap'
all "a bitmap behind the end" 96 4 0x7ffffff 'bitmap'
all "a bitmap over the data" 96 4 8192 'bitmap'

# create: a bitmap that does not fit where it has to go.
mkd 2 256M
snap d0 d1
refused "create: a bitmap larger than its space" "1 2" 'bitmap' -- \
	create md0 --level 1 --raid-devices 2 --run --export=fuse --bitmap=internal --bitmap-chunk=4K \
	--data-offset=16K d0 d1
same "create: a bitmap larger than its space"
truncate -s 100K small
snap d0 small
refused "create: a member too small" 1 'small' -- \
	create md0 --level 1 --raid-devices 2 --run --export=fuse d0 small
same "create: a member too small"
check "nothing runs" nothing_left md0
finish
