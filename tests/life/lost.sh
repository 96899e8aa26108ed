#!/bin/sh
# SPDX-License-Identifier: MIT
# Members that fail or vanish under a running array: detail, status and stop tell.
. "${0%/*}/../lib.sh"
requires_fuse

# The member that will fail is itself an array, whose process is killed.
mkd 4 16M
run=$STRAKE_RUNTIME_DIR
runs "the member: create" create low --level 0 --chunk 64 --raid-devices 2 --export=fuse d2 d3
pid=$(daemon_pid low)
runs "create" create md0 --level 0 --chunk 64 --export=fuse d0 "$run/low" || finish
runs "healthy: detail" detail md0
check "healthy: no word of errors" sh -c "! grep -q 'Errors' '$T/out'"
check "healthy: state" grep -qxE ' +State : clean ' "$T/out"
kill -9 "$pid"
dd if=/dev/zero of="$run/md0" bs=1M count=1 conv=notrunc,fsync 2>/dev/null
check "a write fails" [ $? != 0 ]
runs "failed: detail" detail md0
check "failed: detail has the errors" grep -qE "^ +Errors : [1-9][0-9]* on $run/low \(slot 1\)$" "$T/out"
check "failed: the healthy member has none" sh -c "! grep -q 'Errors.*d0' '$T/out'"
check "failed: detail has the state" grep -qE '^ +State : broken' "$T/out"
runs "failed: status" status
check "failed: status has the state" grep -qE '^md0 : active \(broken\) raid0 low\[1\] d0\[0\]$' "$T/out"
runs "failed: detail --json" detail --json md0
check "failed: JSON has the state" [ "$(json state)" = broken ]
run detail --test md0
check "failed: detail --test" [ $rc = 2 ]
run stop md0
runs "stop the dead member" stop low

# A member's file is deleted.
mkd 2 16M
runs "create" create md0 --level 0 --chunk 64 --export=fuse d0 d1 || finish
runs "before: status" status
check "before: status warns of nothing" [ ! -s "$T/err" ]
rm d1
for verb in status "detail md0"; do
	runs "deleted: $verb" $verb
	check "deleted: $verb warns" sh -c "grep '^strake: md0: .*$T/d1 .*deleted.*copy' '$T/err' | wc -l | grep -qx 1"
	check "deleted: $verb: the path is not marked" sh -c "! grep -q '(deleted)' '$T/out'"
done
runs "deleted: stop" stop md0
check "deleted: stop tells" grep -q "^strake: md0: .*$T/d1 .*deleted" "$T/err"
check "nothing left" nothing_left md0

# A process that is stopped: whoever asks is told so.
rm -f d?
mkd 2 16M
runs "create" create md0 --level 0 --chunk 64 --export=fuse d0 d1 || finish
pid=$(daemon_pid md0)
kill -STOP "$pid"
refused "stopped process: status" 1 'md0' 'has not answered for 10 seconds' -- status
refused "stopped process: detail" 1 'md0' 'has not answered for 10 seconds' -- detail md0
kill -CONT "$pid"
runs "it goes on: status" status
check "it goes on: status shows it" grep -q '^md0 : active raid0' "$T/out"
runs "stop" stop md0
finish
