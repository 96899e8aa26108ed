#!/bin/sh
# SPDX-License-Identifier: MIT
# The life of an array as a file: create, assemble, write, look, stop, assemble again, zero.
. "${0%/*}/../lib.sh"
requires_fuse
requires python3

mkd 3 16M
runs "create and start" create md0 --level 0 --chunk 64 --name data --homehost h --export=fuse d0 d1 d2
node=$STRAKE_RUNTIME_DIR/md0
check "the node can be used as soon as the command returns" [ -w "$node" ]
size=$(stat -Lc %s "$node")
# mdadm's data offset for chunks of 64 KiB is 1 MiB.
check "size" [ "$size" = $((3 * 15 * 1048576)) ]
check "write" "$PATTERN" write "$node" 1
check "read" "$PATTERN" verify "$node" 1
check "no write beyond the end" sh -c "! dd if=/dev/zero of='$node' bs=512 seek=$((size / 512)) count=1 conv=notrunc"
check "the last sector" "$PATTERN" write "$node" 2 $((size - 512)) 512
check "the last sector" "$PATTERN" verify "$node" 2 $((size - 512)) 512
check "the last sector" "$PATTERN" write "$node" 1 $((size - 512)) 512

runs "status" status
check "status: array line" grep -qE '^md0 : active raid0 .*\[2\].*\[1\].*\[0\]' "$T/out"
check "status: size line" grep -qxE "      $((size / 1024)) blocks super 1\.2 64k chunks" "$T/out"
check "status: first and last line" \
	sh -c "head -n 1 '$T/out' | grep -q '^Personalities : ' && tail -n 1 '$T/out' | grep -qx 'unused devices: <none>'"
runs "detail" detail md0
check "detail: level" grep -qxE ' +Raid Level : raid0' "$T/out"
check "detail: chunk" grep -qxE ' +Chunk Size : 64K' "$T/out"
check "detail: name" grep -qE ' +Name : h:data' "$T/out"
check "detail: members" [ "$(grep -cE '^ +[0-9]+ .*active sync .*d[012]$' "$T/out")" = 3 ]
runs "detail --brief" detail --brief md0
check "detail --brief: the line" grep -qE '^ARRAY .*md0 metadata=1\.2 name=h:data UUID=[0-9a-f:]{35}$' "$T/out"
runs "detail --export" detail --export md0
check "detail --export: level" grep -qx 'MD_LEVEL=raid0' "$T/out"
check "detail --export: devices" grep -qx 'MD_DEVICES=3' "$T/out"
runs "detail --test" detail --test md0
for facts in "detail --json md0" "status --json" "examine --json d0"; do
	run $facts
	check "$facts: JSON" python3 -c 'import json,sys; json.load(sys.stdin)' <"$T/out"
done
run query d0
check "query" grep -qi 'raid0' "$T/out"

runs "stop" stop md0
check "nothing left" nothing_left md0
snap d0 d1 d2
"$STRAKE" cat d2 d0 d1 | "$PATTERN" verify - 1 0 "$size"
check "cat, members in any order" [ $? = 0 ]
"$STRAKE" cat --offset 1M --length 65536 d0 d1 d2 | "$PATTERN" verify - 1 1048576 65536
check "cat of a range" [ $? = 0 ]
uuid=$("$STRAKE" examine --export d0 | sed -n 's/^MD_UUID=//p')
runs "assemble by UUID" assemble md0 --export=fuse "--uuid=$uuid" d0 d1 d2
check "content" "$PATTERN" verify "$node" 1
runs "stop" stop md0
runs "assemble --scan of a directory" assemble --scan --export=fuse "$T"
runs "status" status
check "named by its superblock" grep -qE '^data : active' "$T/out"
runs "stop --scan" stop --scan
check "nothing left" nothing_left data
same "reading"
runs "zero-superblock" zero-superblock d0 d1 d2
run examine d0
check "no superblock is left" [ $rc = 1 ]
runs "zero-superblock again" zero-superblock d0
finish
