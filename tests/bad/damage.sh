#!/bin/sh
# SPDX-License-Identifier: MIT
# Damaged and hostile superblocks in all four places: never a crash, never a write, always a reason.
# (fuzz/ throws far more at the decoders; here the whole program meets them.)
. "${0%/*}/../lib.sh"

as="assemble md0 --export=fuse"

# survives WHAT: examine of a damaged d1 tells what it finds or that there is nothing: no crash.
survives() {
	run examine d1
	check "$1: examine does not crash" [ $rc -le 1 ]
}

# turn_down WHAT [WORDS…]: assembling d0 with the damaged d1 is refused, d1 is named.
turn_down() {
	turn_what=$1
	snap d0 d1
	refused "$@" 'd1' -- $as d0 d1
	survives "$turn_what"
	same "$turn_what"
}

fresh() {
	mkd 2 8M
	run create md0 --level 0 --raid-devices 2 --export=none --run --metadata "$1" --chunk 64 d0 d1
	[ $rc = 0 ] || give_up "create with metadata $1"
	at=$(super_at d1 "$1")
	cp d0 good0
	cp d1 good
}

# flip BYTE BIT
flip() {
	byte=$(od -An -tu1 -j "$1" -N 1 d1)
	printf "\\$(printf %o $((byte ^ (1 << $2))))" | dd of=d1 bs=1 seek="$1" conv=notrunc status=none
}

for metadata in 1.0 1.1 1.2 0.90; do
	fresh $metadata
	fields="0 4 8 16 40 64 72 80 88 92 128 136 144 160 168 192 200 208 216 220 256 258"
	[ $metadata != 0.90 ] || fields="0 4 8 20 24 28 32 36 40 44 52 128 132 152 156 256 260 512 528 3968"
	for field in $fields; do
		cp good d1
		flip $((at + field)) $((field / 4 % 8))
		turn_down "$metadata: bit flipped at byte $field of the superblock" 1
	done

	cp good d1
	dd if=/dev/urandom of=d1 bs=4096 count=1 seek=$at oflag=seek_bytes conv=notrunc status=none
	turn_down "$metadata: random bytes" 1
	dd if=good of=d1 bs=1 count=8 skip=$at seek=$at conv=notrunc status=none
	turn_down "$metadata: random bytes after the magic" 1

	cp good d1
	truncate -s 7M d1
	turn_down "$metadata: truncated device" 1
	cp good d1
	truncate -s $((at + 100)) d1
	turn_down "$metadata: truncated within the superblock" 1
done

# Right checksum, wrong contents: sections 1.5 and 11 of the specification.
# hostile WHAT FIELD WIDTH VALUE [WORDS…]: in d1 only.
hostile() {
	hostile_what=$1
	cp good d1
	"$SUPEREDIT" d1 "$at" "$2" "$3" "$4"
	shift 4
	turn_down "$hostile_what" 1 "$@"
}

# lie WHAT FIELD WIDTH VALUE [WORDS…]: in both members, so that they agree with each other.
lie() {
	lie_what=$1
	cp good d1
	cp good0 d0
	"$SUPEREDIT" d1 "$at" "$2" "$3" "$4"
	"$SUPEREDIT" d0 "$at" "$2" "$3" "$4"
	shift 4
	snap d0 d1
	refused "$lie_what" 1 'd[01]|md0|[0-9a-f]{8}:' "$@" -- $as d0 d1
	survives "$lie_what"
	same "$lie_what"
	cp good0 d0
}

for metadata in 1.0 1.1 1.2; do
	fresh $metadata
	lie "$metadata: unknown feature bit" 8 4 0x2000 'feature'
	lie "$metadata: raid_disks 4294967295" 92 4 0xffffffff
	lie "$metadata: raid_disks 0" 92 4 0
	lie "$metadata: raid_disks 3" 92 4 3
	lie "$metadata: chunk 0" 88 4 0 'chunk'
	lie "$metadata: chunk 4294967295" 88 4 0xffffffff 'chunk'
	lie "$metadata: chunk larger than a member" 88 4 0x10000 'chunk'
	lie "$metadata: level 77" 72 4 77 'level|77'
	lie "$metadata: level 5" 72 4 5 'not yet supported|level|raid5'
	lie "$metadata: max_dev 60000" 220 4 60000
	hostile "$metadata: pad0" 12 4 1
	hostile "$metadata: padding behind byte 228" 232 4 1
	hostile "$metadata: data_offset beyond the device" 128 8 0xfffffffffff0
	hostile "$metadata: data_offset overflows" 128 8 0xffffffffffffffff
	hostile "$metadata: claims more space than the device has" 136 8 0xffffffff
	hostile "$metadata: claims more space than numbers have" 136 8 0xfffffffffffffff8
	hostile "$metadata: claims nearly no space" 136 8 8
	hostile "$metadata: superblock from elsewhere" 144 8 16
	hostile "$metadata: dev_number 500" 160 4 500
	hostile "$metadata: role 9" 258 2 9
	hostile "$metadata: role faulty" 258 2 0xfffe
	hostile "$metadata: another chunk than the others say" 88 4 64
	hostile "$metadata: another level than the others say" 72 4 0xffffffff
done
fresh 0.90
lie "0.90: raid_disks 4294967295" 40 4 0xffffffff
lie "0.90: raid_disks 0" 40 4 0
lie "0.90: chunk 0" 260 4 0 'chunk'
lie "0.90: chunk 3" 260 4 3 'chunk'
lie "0.90: level 77" 28 4 77 'level|77'
hostile "0.90: own number 26" 3968 4 26
hostile "0.90: own number 4000000000" 3968 4 4000000000

# Linux 6.19 and later keep the logical block size at byte 224: that is no damage.
fresh 1.2
for file in d0 d1; do "$SUPEREDIT" $file "$at" 224 4 512; done
snap d0 d1
runs "logical block size 512 at byte 224: cat reads the array" cat d0 d1
same "logical block size"
check "nothing runs" nothing_left md0
finish
