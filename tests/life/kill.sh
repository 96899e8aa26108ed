#!/bin/sh
# SPDX-License-Identifier: MIT
# The daemon dies by kill -9: what it leaves is recognised, and the next assemble goes through. SIGTERM
# does what stop does.
. "${0%/*}/../lib.sh"
requires_fuse

mkd 2 16M
create_pair md0 --chunk 64
for export in fuse "nbd:$T/nbd"; do
	runs "$export: assemble" assemble md0 "--export=$export" d0 d1 || finish
	pid=$(daemon_pid md0)
	[ "$export" != fuse ] || check "write" "$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" 1
	for pid in $(our_daemons); do kill -9 "$pid"; done
	until_true 5 no_daemons
	runs "$export: status after kill -9" status
	check "$export: the dead array is not listed" sh -c "! grep -q '^md0' '$T/out'"
	runs "$export: assemble after kill -9" assemble md0 "--export=$export" d0 d1 || finish
	[ "$export" != fuse ] || check "content" "$PATTERN" verify "$STRAKE_RUNTIME_DIR/md0" 1
	[ "$export" = fuse ] || check "NBD answers" nbdinfo --size "nbd+unix:///?socket=$T/nbd"
	runs "$export: stop" stop md0
	check "$export: nothing left" nothing_left md0

	runs "$export: assemble" assemble md0 "--export=$export" d0 d1
	pid=$(daemon_pid md0)
	check "$export: the daemon's number is known" [ -d "/proc/$pid" ]
	kill -TERM "$pid"
	check "$export: SIGTERM ends it" until_true 10 no_daemons
	check "$export: SIGTERM leaves nothing" nothing_left md0
done
snap d0 d1
runs "after it all: assemble" assemble md0 --export=fuse d0 d1
runs "stop" stop md0
same "after it all"

# Stop after kill -9 clears away what was left.
runs "assemble" assemble md0 --export=fuse d0 d1
for pid in $(our_daemons); do kill -9 "$pid"; done
until_true 5 no_daemons
runs "assemble under another name after kill -9" assemble md1 --export=fuse d0 d1
runs "stop" stop md1
finish
