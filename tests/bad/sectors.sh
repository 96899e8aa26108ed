#!/bin/sh
# SPDX-License-Identifier: MIT
# Devices with sectors of 512 and of 4096 bytes in one array. The kernel's md gives the array the
# largest sectors of its members, and a file system made before with smaller ones does not mount any
# more: create and add refuse that before the first write. With --force it works, and the array's
# own sectors stay 512 bytes.
. "${0%/*}/../lib.sh"
requires_fuse
requires_loops
node=$STRAKE_RUNTIME_DIR/md0

mkd 4 16M
large=$(losetup -f --show -b 4096 d3) || skip "no loop device with sectors of 4096 bytes"
[ "$(blockdev --getss "$large")" = 4096 ] || skip "no loop device with sectors of 4096 bytes"
snap d0 d1 d2 d3
for level in 0 1 5 10; do
	refused "create level $level" 1 "$large" 'd0' '4096' '512' 'force' -- \
		create md0 --level $level --raid-devices 4 --export=fuse --run d0 d1 "$large" d2
done
same "create"
check "create: nothing runs" no_daemons

runs "an array of members with small sectors" create md0 --level 5 --raid-devices 3 --export=fuse \
	d0 d1 d2
check "write" "$PATTERN" write "$node" 1
before=$(sha256sum <d3)
refused "add" 1 "$large" '4096' '512' 'force' -- md0 --add "$large"
check "add: nothing was written" [ "$(sha256sum <d3)" = "$before" ]
runs "a member fails, and leaves" md0 --fail d1 --remove d1
refused "add where one is missing" 1 "$large" '4096' '512' 'force' -- md0 --add "$large"
check "add: nothing was written" [ "$(sha256sum <d3)" = "$before" ]
check "the array is as it was" "$PATTERN" verify "$node" 1
runs "add by force" md0 --add --force "$large"
run wait md0
check "it was rebuilt" [ $rc -eq 0 ]
check "content" "$PATTERN" verify "$node" 1

# Writes of 512 bytes, at and across the edges of a large sector.
head -c 1536 /dev/urandom >some
for sector in 5 7 8 1023; do
	check "write of three small sectors at $sector" \
		dd if=some of="$node" bs=512 seek=$sector conv=notrunc,fsync status=none
done
runs "check" check md0 --wait
check "no mismatch" grep -q 'no mismatch' "$T/out"
runs "it serves without another member" md0 --fail d0
for sector in 5 8 1023; do
	check "what was written at $sector" cmp -n 512 -i 0:$((sector * 512)) some "$node"
done
run detail --json md0
check "the array's sectors stay small" [ "$(json logical_block_bytes)" != 4096 ]
runs "stop" stop md0
runs "assemble" assemble md62 --readonly --run --export=loop "$large" d2
check "the block device's sectors" [ "$(blockdev --getss /dev/md62)" = 512 ]
runs "stop" stop md62
check "nothing runs" until_true 5 no_daemons
losetup -d "$large"
finish
