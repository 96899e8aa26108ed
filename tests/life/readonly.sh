#!/bin/sh
# SPDX-License-Identifier: MIT
# --readonly: members are opened O_RDONLY, writes are refused with EROFS. And without it: starting,
# reading and stopping write nothing either.
. "${0%/*}/../lib.sh"
requires_fuse
requires nbdcopy nbdinfo

node=$STRAKE_RUNTIME_DIR/md0

# member_flags PID: the open(2) flags of each descriptor of d0 and d1, octal
member_flags() {
	for fd in "/proc/$1"/fd/*; do
		case $(readlink "$fd") in
		"$T"/d[01]) sed -n 's/^flags:[[:space:]]*//p' "/proc/$1/fdinfo/${fd##*/}" ;;
		esac
	done
}

only_readers() {
	flags=$(member_flags "$1")
	[ -n "$flags" ] || return 1
	for flag in $flags; do
		[ $((flag & 3)) = 0 ] || return 1
	done
}

for level in 0 linear; do
	for metadata in 0.90 1.0 1.1 1.2; do
		mkd 2 8M
		runs "create $level $metadata" create md0 --level $level --metadata $metadata \
			--raid-devices 2 --export=none d0 d1
		snap d0 d1
		touch -d @1000000 d0 d1
		runs "assemble" assemble md0 --export=fuse d0 d1 || finish
		cat "$node" >/dev/null
		runs "detail" detail md0
		runs "stop" stop md0
		same "$level $metadata: start, read, stop"
		check "$level $metadata: no write at all" [ "$(stat -c %Y d0 d1 | uniq)" = 1000000 ]
	done
done

chmod 444 d0 d1
runs "assemble --readonly" assemble md0 --readonly --export=fuse d0 d1 || finish
pid=$(daemon_pid md0)
check "members are open O_RDONLY" only_readers "$pid"
dd if=/dev/zero of="$node" bs=4096 count=1 conv=notrunc,fsync >said 2>&1
check "a write fails" [ $? != 0 ]
check "FUSE: with EROFS" grep -q 'Read-only file system' said
check "a read works" dd if="$node" of=/dev/null bs=1M
run detail --json md0
check "detail tells" grep -q '"readonly": *true' "$T/out"
runs "stop" stop md0

runs "assemble --readonly, NBD" assemble md0 --readonly "--export=nbd:$T/nbd" d0 d1 || finish
check "NBD: members are open O_RDONLY" only_readers "$(daemon_pid md0)"
check "NBD: the export says so" nbdinfo --is readonly "nbd+unix:///?socket=$T/nbd"
truncate -s 1M whole
nbdcopy whole "nbd+unix:///?socket=$T/nbd" >said 2>&1
check "NBD: a write fails" [ $? != 0 ]
runs "stop" stop md0
same "--readonly"
finish
