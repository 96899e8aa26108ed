#!/bin/sh
# SPDX-License-Identifier: MIT
# Field cases on metadata, those that are about arrays with redundancy and small: 1 (a number that
# newer kernels put into padding), 5 (a new member that the kernel would not take), 8 (questions to
# nobody, defaults that are not told), 10 (an array's name depends on the host), 21 (a version named
# at assembly), 22 (links and odd paths), 33 (looking writes), 34 (a resync that waits).
. "${0%/*}/../lib.sh"
requires_fuse
requires mdadm
node=$STRAKE_RUNTIME_DIR/md0

# 1: byte 224, the logical block size of Linux 6.19: shown, no damage, array starts and lives.
mkd 2 8M
runs "1: create" create md0 --level 1 --raid-devices 2 --export=none d0 d1
for file in d0 d1; do "$SUPEREDIT" $file 4096 224 4 512; done
runs "1: examine" examine d0
check "1: it is shown" grep -q '512' "$T/out"
runs "1: assemble" assemble md0 --export=fuse d0 d1
check "1: write" "$PATTERN" write "$node" 1
runs "1: stop" stop md0
for file in d0 d1; do
	check "1: $file keeps the number" [ "$(od -An -tu4 -j 4320 -N 4 $file | tr -d ' ')" = 512 ]
done
for file in d0 d1; do "$SUPEREDIT" $file 4096 224 4 4096; done
runs "1: with 4096: cat" cat d0 d1

# 5: a member's log has an entry, another member is replaced: the new one says of no bad blocks, or
# has a list of them: never the flag and an empty list.
mkd 4 16M
truncate -s 16M e0
runs "5: create" create md0 --level 5 --raid-devices 4 --assume-clean --export=none d0 d1 d2 d3
log=$((4096 + $(mdadm --examine d2 | sed -n 's/.*offset \([0-9]*\) sectors.*/\1/p') * 512))
first=$(mdadm --examine d2 | sed -n 's/.*Data Offset : \([0-9]*\) sectors/\1/p')
entry=$(((first + 8192) << 10 | 8))
bytes=
for shift in 0 8 16 24 32 40 48 56; do bytes="$bytes\\$(printf %o $((entry >> shift & 255)))"; done
head -c 4096 /dev/zero | tr '\0' '\377' | dd of=d2 bs=4096 seek=$log oflag=seek_bytes conv=notrunc status=none
printf "$bytes" | dd of=d2 bs=8 seek=$log oflag=seek_bytes conv=notrunc status=none
"$SUPEREDIT" d2 4096 8 4 $((0x8 | $(od -An -tu4 -j 4104 -N 4 d2)))
check "5: mdadm sees the entry" sh -c "mdadm --examine-badblocks d2 | grep -q ' for 8 sectors'"
runs "5: assemble" assemble md0 --export=fuse d0 d1 d2 d3
runs "5: another comes" md0 --fail d1 --remove d1 --add e0
run wait md0
runs "5: stop" stop md0
flag=$(($(od -An -tu4 -j 4104 -N 4 e0) & 8))
entries=$(mdadm --examine-badblocks e0 | grep -c ' for ')
[ "$flag" -eq 8 ] && [ "$entries" -gt 0 ] && entries=some
check "5: the flag ($flag) says what is there ($entries)" \
	sh -c "[ '$flag $entries' = '0 0' ] || [ '$flag $entries' = '8 some' ]"
check "5: the old entry is still there" sh -c "mdadm --examine-badblocks d2 | grep -q ' for 8 sectors'"

# 8: large mirrors, nobody at the terminal: no question, no wait, a bitmap, and it is told.
mkd 2 110G
begin=$(date +%s)
runs "8: create" create md0 --level 1 --raid-devices 2 --export=none d0 d1
check "8: within seconds" [ $(($(date +%s) - begin)) -le 5 ]
check "8: it has a bitmap" sh -c "mdadm --examine d0 | grep -q 'Internal Bitmap'"
mkd 2 8M
runs "8: a small one" create md0 --level 1 --raid-devices 2 --export=none d0 d1
check "8: a small one has none, as with mdadm" sh -c "! mdadm --examine d0 | grep -q 'Internal Bitmap'"

# 10: the name is the name, on whatever host.
mkd 2 8M
runs "10: create" create data --level 1 --raid-devices 2 --homehost=aaa --export=none d0 d1
for host in aaa bbb xenX cn42; do
	runs "10: on host $host" assemble --homehost=$host --export=fuse d0 d1
	check "10: on host $host: its path" [ -f "$STRAKE_RUNTIME_DIR/data" ]
	runs "10: on host $host: stop" stop data
done
runs "10: by name" assemble --name=data --scan-in="$T/d0" --scan-in="$T/d1" --export=fuse
run stop data

# 21: the version is named.
for metadata in 0.90 1.0 1.1 1.2; do
	mkd 2 8M
	runs "21: create $metadata" create md0 --level 1 --raid-devices 2 -e $metadata --export=none d0 d1
	for members in "d0 d1" "d1 d0"; do
		run --assemble -e $metadata md0 --export=fuse $members
		check "21: assemble -e $metadata $members" [ $rc -le 2 ]
		[ $rc -eq 0 ] || check "21: -e $metadata: words" grep -q metadata "$T/err"
		run stop md0
	done
done

# 22: links, relative paths, spaces, dashes.
mkdir -p "a b" by-id
rm -f d?
truncate -s 8M "a b/d 0" ./-x d2 d3
ln -s "$T/a b/d 0" by-id/disk-0
ln -s ../d2 by-id/disk-2
runs "22: create" create md0 --level 5 --raid-devices 3 --assume-clean --export=fuse by-id/disk-0 ./-x by-id/disk-2
check "22: write" "$PATTERN" write "$node" 1
runs "22: fail by another name" md0 --fail "a b/d 0"
runs "22: remove by a link" md0 --remove by-id/disk-0
runs "22: re-add or add by a link" md0 --add --force by-id/disk-0
run wait md0
runs "22: replace by a link" md0 --add-spare d3 --replace by-id/disk-2 --with "$T/d3"
run wait md0
runs "22: remove the replaced" md0 --remove d2
check "22: content" "$PATTERN" verify "$node" 1
runs "22: stop" stop md0
runs "22: assemble" assemble md0 --export=fuse -- ./-x by-id/disk-0 d3
check "22: content" "$PATTERN" verify "$node" 1
runs "22: stop" stop md0

# 33: looking at an array that was not stopped cleanly writes nothing, and the members are opened so.
mkd 3 8M
runs "33: create" create md0 --level 5 --raid-devices 3 --assume-clean --export=fuse --bitmap=none d0 d1 d2
check "33: write" "$PATTERN" write "$node" 1
kill -9 "$(daemon_pid md0)"
until_true 5 no_daemons
run stop md0
snap d0 d1 d2
run examine d0 d1 d2
run query d0
run cat --run --force d0 d1
runs "33: assemble" assemble md0 --readonly --export=fuse d0 d1 d2
for fd in /proc/"$(daemon_pid md0)"/fd/*; do
	case $(readlink "$fd") in
	"$T"/d?) echo "$fd $(sed -n 's/flags:\t*//p' "${fd%/fd/*}/fdinfo/${fd##*/}")" ;;
	esac
done >open
check "33: members are open" [ -s open ]
check "33: members are open for reading only" sh -c "! grep -vq '0\$' open"
check "33: content" "$PATTERN" verify "$node" 1
runs "33: stop" stop md0
same "33: looking"

# 34: read-only, the resync waits, and that is told; writable, it begins.
runs "34: assemble" assemble md0 --readonly --export=fuse d0 d1 d2
run status
check "34: status" grep -q 'resync=PENDING' "$T/out"
runs "34: stop" stop md0
runs "34: assemble, writable" assemble md0 --export=fuse d0 d1 d2
run wait md0
run status
check "34: then it is resynced" sh -c "! grep -q PENDING '$T/out'"
check "34: content" "$PATTERN" verify "$node" 1
runs "34: stop" stop md0
check "nothing runs" nothing_left md0
finish
