#!/bin/sh
# SPDX-License-Identifier: MIT
# The command that starts an array returns and lets go of everything: no descriptor of its caller, no
# working directory, no terminal. And only one of many that start the same array at once succeeds.
. "${0%/*}/../lib.sh"
requires_fuse

mkd 2 16M
create_pair md0
mkdir elsewhere
(cd elsewhere && timeout 20 "$STRAKE" assemble md0 --export=fuse ../d0 ../d1 2>&1 </dev/null | cat) >said
check "the caller's pipe is closed" [ -S "$STRAKE_RUNTIME_DIR/md0.sock" ] || explain said
pid=$(daemon_pid md0)
check "it is the daemon" [ -d "/proc/$pid" ]
check "its working directory is not the caller's" [ "$(readlink "/proc/$pid/cwd")" != "$T/elsewhere" ]
check "its standard error is not the caller's" sh -c "! readlink /proc/$pid/fd/2 | grep -qE 'pipe|$T/'"
# After the name in parentheses: state, parent, group, session.
session() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f4; }
check "it has a session of its own" [ "$(session "$pid")" != "$(session $$)" ]
check "it leads that session" [ "$(session "$pid")" = "$pid" ]
runs "stop" stop md0
check "nothing left" nothing_left md0

i=0
while [ $i -lt 8 ]; do
	(timeout 30 "$STRAKE" assemble md0 --export=fuse d0 d1 >"said.$i" 2>&1 </dev/null; echo $? >"code.$i") &
	i=$((i + 1))
done
wait
check "of eight at once one starts it" [ "$(cat code.* | grep -cx 0)" = 1 ] || explain said.*
check "the others say why" [ "$(grep -lE 'md0|d0' said.* | wc -l)" -ge 7 ]
runs "stop" stop md0
check "nothing left" nothing_left md0

# Eight creates of one name over different members: seven lose, and write nothing.
i=0
while [ $i -lt 8 ]; do
	truncate -s 16M "p$i.a" "p$i.b"
	i=$((i + 1))
done
rm -f code.* said.*
i=0
while [ $i -lt 8 ]; do
	(timeout 30 "$STRAKE" create same --level 0 --raid-devices 2 --export=fuse "p$i.a" "p$i.b" \
		>"said.$i" 2>&1 </dev/null; echo $? >"code.$i") &
	i=$((i + 1))
done
wait
check "of eight creates one wins" [ "$(cat code.* | grep -cx 0)" = 1 ] || explain said.*
written=$(for member in p*.[ab]; do "$STRAKE" examine "$member" >/dev/null 2>&1 && echo "$member"; done | wc -l)
check "only the winner's members were written" [ "$written" = 2 ]
runs "stop" stop same
check "nothing left" nothing_left same
check "no lock is left" sh -c '! ls "$STRAKE_RUNTIME_DIR"/*.lock'
finish
