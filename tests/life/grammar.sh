#!/bin/sh
# SPDX-License-Identifier: MIT
# mdadm's grammar as it stands, long and short options.
. "${0%/*}/../lib.sh"
requires_fuse
requires mdadm

mkd 2 16M
for words in \
	"--create /dev/md0 --run --export=none --level=0 --raid-devices=2 --chunk=64 d0 d1" \
	"--create md0 --run --export=none --level=raid0 --raid-devices=2 --chunk=64K d0 d1" \
	"-C /dev/md0 -R --export=none -l 0 -n 2 -c 64 d0 d1" \
	"-CR /dev/md0 -l0 -n2 -c64 --export=none d0 d1" \
	"-C md0 -l stripe -n 2 -c 64 -e 1.2 --run --export=none d0 d1" \
	"create md0 d0 d1 --level 0 -n 2 --chunk=64 --run --export none"; do
	mkd 2 16M
	runs "$words" $words
	check "$words: mdadm finds what was asked for" sh -c \
		"mdadm --examine d1 | tr -s ' ' | grep -qx ' Chunk Size : 64K'"
done
for words in "-C md0 -l linear -n 2" "-C md0 --level=-1 -n 2" "-C md0 --level=linear --raid-devices=2"; do
	mkd 2 16M
	runs "$words" $words --run --export=none d0 d1
	check "$words: linear" sh -c "mdadm --examine d1 | grep -q 'Raid Level : linear'"
done

mdadm --examine d0 >expected
for words in "--examine d0" "-E d0" "examine d0"; do
	runs "$words" $words
	check "$words: text" cmp "$T/out" expected
done
mdadm --examine --brief d0 d1 >expected
for words in "--examine --brief d0 d1" "-E -b d0 d1" "-Eb d0 d1" "examine --brief d0 d1"; do
	runs "$words" $words
	check "$words: text" cmp "$T/out" expected
done
mdadm --examine --export d0 >expected
for words in "--examine --export d0" "-E -Y d0" "examine --export d0"; do
	runs "$words" $words
	check "$words: text" cmp "$T/out" expected
done

for words in "--assemble /dev/md0" "-A /dev/md0" "-A md0" "assemble md0"; do
	runs "$words" $words --export=fuse d0 d1
	for detail in "--detail /dev/md0" "-D md0" "detail md0"; do
		runs "$detail" $detail
		check "$detail: level" grep -qxE ' +Raid Level : linear' "$T/out"
	done
	case $words in
	--*) runs "--stop /dev/md0" --stop /dev/md0 ;;
	*) runs "-S md0" -S md0 ;;
	esac
done

for level in linear 0; do
	runs "--build of level $level" --build md0 --level=$level --raid-devices=2 --chunk=64 \
		--export=fuse d0 d1
	runs "detail of it" detail md0
	runs "stop" stop md0
done

runs "--zero-superblock" --zero-superblock d0 d1
runs "--version" --version
check "--version: text" grep -q '^strake' "$T/out" "$T/err"
runs "--help" --help
run
check "no word at all: usage, exit code 2" [ $rc = 2 ]
finish
