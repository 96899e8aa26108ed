#!/bin/sh
# SPDX-License-Identifier: MIT
# The commands that need no running array, on sparse files. usage: cli_test.sh STRAKE
set -u
strake=$(realpath "$1") || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/strake-cli.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
STRAKE_RUNTIME_DIR=$work/run
export STRAKE_RUNTIME_DIR
failed=0
number=0

# expect CODE WORDS COMMAND…: exit code, and an extended regular expression that the output contains.
expect() {
	code=$1 words=$2
	shift 2
	number=$((number + 1))
	"$strake" "$@" >out 2>err </dev/null
	got=$?
	if [ $got -eq "$code" ] && { [ -z "$words" ] || cat out err | grep -Eqi -- "$words"; }; then
		echo "ok $number - $*"
	else
		echo "not ok $number - $*: exit $got, wanted $code and '$words'"
		sed 's/^/# /' out err | head -n 10
		failed=1
	fi
}

check() {
	number=$((number + 1))
	name=$1
	shift
	if "$@"; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		failed=1
	fi
}

disks() {
	rm -f a.img b.img
	truncate -s 64M a.img b.img
}
create="create md0 --level 0 --export=none"

expect 0 'strake - v[0-9]' --version
expect 0 '--raid-devices' create --help
expect 0 '--create' --help
expect 0 'complete .*strake' --completion bash
expect 2 "did you mean 'create'" creat md0
expect 2 "did you mean '--level'" create md0 --levl 0
expect 2 "unknown command 'advis'" advis
check "nothing unsupported is suggested" sh -c '! grep -q "did you mean" err'
expect 2 "option '--monitr'" create md0 --monitr
check "nothing unsupported is suggested" sh -c '! grep -q "monitor" err'
expect 1 'not yet supported' create md0 --level multipath a.img b.img
expect 1 'cannot open /dev/md0' /dev/md0 --fail a.img
expect 2 'what to do with' manage md0 a.img

disks
expect 0 'created on 2 members' $create a.img b.img
expect 0 'Raid Level : raid0' examine a.img
expect 1 'same array|member|holds' $create a.img b.img
cp a.img before
expect 1 'nothing was written' $create a.img b.img
check "refused: nothing written" cmp -s a.img before
expect 0 'created' $create --force --chunk 64 --metadata 1.0 --name x --homehost h a.img b.img
expect 0 'h:x' examine a.img
expect 0 'Version : 1.0' examine a.img
expect 0 '' examine b.img
check "the old superblock is gone" sh -c '[ "$(dd if=a.img bs=512 skip=8 count=8 2>/dev/null |
	tr -d "\0" | wc -c)" -eq 0 ]'

disks
expect 0 created --create /dev/md0 -l0 -n2 -c64 --export=none a.img b.img
head -c 1000000 /dev/urandom >data
sectors=$("$strake" examine a.img | sed -n 's/^ *Data Offset : \([0-9]*\) .*/\1/p')
at=$((sectors * 512))
split -b 65536 -d -a 3 data piece.
row=0
for piece in piece.*; do
	[ $((row % 2)) -eq 0 ] && disk=a.img || disk=b.img
	dd if="$piece" of=$disk bs=64k seek=$((at + row / 2 * 65536)) oflag=seek_bytes conv=notrunc \
		status=none
	row=$((row + 1))
done
sha256sum a.img b.img >sums
expect 0 '' cat --length 1000000 a.img b.img
check "cat gives the content" cmp -s out data
expect 0 '' cat --io=sync --length 1000000 b.img a.img
check "cat gives the content, members turned round, plain calls" cmp -s out data
expect 0 '' cat --offset 65535 --length 100003 a.img b.img
tail -c +65536 data | head -c 100003 >part
check "cat of a range that starts and ends within sectors" cmp -s out part
expect 1 'beyond the end' cat --offset 1T a.img b.img
"$strake" cat a.img b.img | head -c 10 >ten
check "a reader that goes away" sh -c "head -c 10 data | cmp -s - ten"
"$strake" cat a.img b.img >/dev/full 2>err
check "a full output is an error" grep -q 'standard output' err
check "cat writes nothing" sha256sum --quiet -c sums
expect 1 'slot 1|missing' cat a.img

cp a.img copy.img
truncate -s 64M blank.img
: >empty.img
ln -s a.img link.img
expect 1 'no md superblock' cat blank.img
expect 1 'No such file' $create a.img nope.img
expect 1 'empty' $create --force blank.img empty.img
expect 1 'same device' $create --force a.img link.img
expect 1 'enough devices' $create --raid-devices 3 --force a.img b.img
expect 1 'more devices' $create --raid-devices 1 --force a.img b.img
expect 1 "'missing' is impossible" $create --force a.img missing
expect 2 'level is needed' create md0 --export=none a.img b.img
expect 2 'no members given' create md0 --level 0 --export=none
expect 2 'no array named' create --level 0 --export=none
expect 2 'starts nothing' $create --readonly a.img b.img
expect 2 'cannot be the name' create md0/x --level 0 --export=none a.img b.img
expect 2 'level and --raid-devices' build md0 a.img b.img
expect 1 'asked for' build md0 --level 0 --raid-devices 3 a.img b.img
expect 2 'cannot be the name' assemble .x a.img b.img
expect 2 'no members given' assemble
check "refused: nothing written" sha256sum --quiet -c sums

# Writing the second superblock fails: it would stand beyond the largest file allowed. (The limit
# counts for regular files whatever their size is already.)
truncate -s 16M small.img
truncate -s 64M large.img
sha256sum small.img large.img >limit_sums
(
	trap '' XFSZ
	ulimit -f 65536
	"$strake" create md0 --level 0 --metadata 1.0 --export=none small.img large.img 2>err
)
check "a failed write is an error" grep -q 'large.img.*File too large' err
check "and says that all is as before" grep -q 'as they were before' err
check "and all is as before" sha256sum --quiet -c limit_sums

expect 0 '' zero-superblock a.img
expect 0 'Unrecognised md component device' --zero-superblock a.img
expect 1 'No md superblock|no md superblock' examine a.img
expect 1 'nope' zero-superblock nope.img
expect 1 'no such array is running' stop md0
expect 1 'no such array is running' partprobe md0
expect 2 'number of bytes' readahead md0 many
exit $failed
