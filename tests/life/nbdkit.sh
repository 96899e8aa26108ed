#!/bin/sh
# SPDX-License-Identifier: MIT
# nbdkit's plugin: the array opened once for all clients, with flush, FUA, trim and zero.
. "${0%/*}/../lib.sh"
requires nbdkit nbdcopy nbdinfo

plugin=$BUILD/src/export/nbd/nbdkit-strake-plugin.so
check "the plugin is built" [ -f "$plugin" ] || finish

mkd 3 16M
runs "create" create md0 --level 0 --raid-devices 3 --chunk 64 --export=none d0 d1 d2
size=$((3 * 15 * 1048576))
truncate -s $size whole copy
"$PATTERN" write whole 4

# serve COMMAND…: run the command while nbdkit serves the array; $uri is its address.
serve() {
	timeout 60 nbdkit -U - "$plugin" $flags d2 d0 d1 --run "$*"
}

flags=
snap d0 d1 d2
check "starting and stopping" serve true
same "starting and stopping"
check "size" [ "$(serve 'nbdinfo --size $uri')" = $size ]
for can in flush fua trim zero write multi-conn; do
	check "can $can" serve "nbdinfo --can $can \$uri"
done
check "write by many connections" serve 'nbdcopy --connections=4 --flush whole $uri'
check "read by many connections" serve "nbdcopy --connections=4 \$uri - | '$PATTERN' verify - 4 0 $size"
"$STRAKE" cat d0 d1 d2 | "$PATTERN" verify - 4 0 $size
check "cat finds the same" [ $? = 0 ]
check "nbdkit refuses what strake refuses" sh -c "! timeout 20 nbdkit -U - '$plugin' d0 d1 --run true"
flags=-r
snap d0 d1 d2
check "read-only" serve 'nbdinfo --is readonly $uri'
check "read-only: a write fails" serve '! nbdcopy whole $uri'
same "read-only"
flags=
nbdkit -f -U "$T/one" "$plugin" d0 d1 d2 2>said &
server=$!
until_true 10 [ -S "$T/one" ]
refused "members that nbdkit serves are in use" "1 2" 'd[012]' 'use|busy|lock' -- \
	assemble md0 --export=fuse d0 d1 d2
kill $server
wait $server
finish
