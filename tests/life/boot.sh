#!/bin/sh
# SPDX-License-Identifier: MIT
# The systemd unit: systemd reads it without complaint, and its commands do what they are there for.
. "${0%/*}/../lib.sh"

unit=$BUILD/systemd/strake-assemble.service
check "it is built" [ -f "$unit" ] || finish
if command -v systemd-analyze >/dev/null; then
	# The program is installed nowhere yet: the copy names the one that was built.
	sed "s#^\(Exec[A-Za-z]*=\)[^ ]*#\1$STRAKE#" "$unit" >strake-assemble.service
	check "systemd-analyze verify" systemd-analyze verify --man=no "$T/strake-assemble.service"
	check "it has nothing to say" [ ! -s "$T/.check" ] || explain "$T/.check"
fi

# Here only the test's own folder is searched, not every device of this machine.
requires_fuse
mkd 2 16M
runs "create" create md0 --level 0 --raid-devices 2 --export=none --homehost h --name boot d0 d1
start=$(sed -n 's/^ExecStart=[^ ]* //p' "$unit")
stop=$(sed -n 's/^ExecStop=[^ ]* //p' "$unit")
# shellcheck disable=SC2086 # several words
runs "its start" $start --export=fuse "$T"
check "the array is there" [ -f "$STRAKE_RUNTIME_DIR/boot" ]
# shellcheck disable=SC2086
runs "its start when all run already" $start --export=fuse "$T"
# shellcheck disable=SC2086
runs "its stop" $stop
check "nothing left" nothing_left boot
finish
