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
finish
