#!/bin/sh
# SPDX-License-Identifier: MIT
# Members that NBD servers have: by URI and by the path of a socket; servers that die, arrays that
# serve others, and what is refused.
. "${0%/*}/../lib.sh"
requires_fuse
requires nbdkit nbdinfo qemu-nbd
RUN_SECONDS=60

servers=
end_servers() { for pid in $servers; do kill "$pid" 2>/dev/null; done; }
trap 'end_servers; cleanup' EXIT

# serve SOCKET ARGUMENT…: an nbdkit in the background; its process in $server
serve() {
	serve_socket=$1
	shift
	rm -f "$serve_socket" "$T/pid"
	env -u STRAKE_RUNTIME_DIR nbdkit --unix "$T/$serve_socket" --pidfile "$T/pid" "$@" || give_up "nbdkit $*"
	until_true 10 test -s "$T/pid" || give_up "nbdkit $* says no process number"
	server=$(cat "$T/pid")
	servers="$servers $server"
}

kill_server() {
	kill "-$1" "$2"
	until_true 10 sh -c "! kill -0 $2"
}

file=$STRAKE_RUNTIME_DIR/md0
uri="nbd+unix:///?socket=$T/sock"
state_of() { "$STRAKE" status | sed -n 's/.*\(\[[U_]*\]\).*/\1/p'; }

examine_says() { "$STRAKE" examine "$1" | grep -q "$2"; }

# A mirror of a file and an export.
mkd 2 48M
serve sock file d1
if ! "$STRAKE" examine "$uri" 2>&1 | grep -q 'No md superblock'; then
	"$STRAKE" examine "$uri" 2>&1 | grep -q 'without libnbd' && skip "built without libnbd"
fi
runs "create" create md0 --level 1 --raid-devices 2 --homehost h --export=fuse d0 "$uri"
size=$(stat -c %s "$file")
"$PATTERN" write "$file" 7
check "content" "$PATTERN" verify "$file" 7
runs "detail" detail --json md0
check "detail: the URI is the member's path" grep -qF "\"path\": \"$uri\"" "$T/out"
runs "status" status
check "examine of the URI" examine_says "$uri" 'Device Role : Active device 1'
check "examine of the socket" examine_says sock 'Device Role : Active device 1'

check "query of the URI" sh -c "'$STRAKE' --query '$uri' | grep -q 'device active raid1'"
truncate -s 48M d2
refused "in use: the socket" 1 'in use by the running array md0' -- \
	create md1 --level 0 --raid-devices 2 --force --export=fuse d2 sock
refused "in use: a URI relative to here" 1 'in use by the running array md0' -- \
	zero-superblock "nbd+unix:///?socket=sock"
refused "added twice" 1 'member of the array already' -- md0 --add "$T/sock"

# The server dies amid writing: the array goes on with the file.
"$PATTERN" write "$file" 8 &
writer=$!
kill_server KILL "$server"
wait $writer
check "the writer saw nothing of it" [ $? = 0 ]
check "degraded" until_true 10 sh -c "'$STRAKE' status | grep -q '\[U_\]'"
check "content, degraded" "$PATTERN" verify "$file" 8
runs "detail, degraded" detail md0
check "detail names the faulty one" grep -q "faulty.*socket=$T/sock" "$T/out"
refused "add without a server" 1 'remove it first' -- md0 --add "$uri"
runs "remove by URI" md0 --remove "$uri"
refused "re-add without a server" 1 'no connection' -- md0 --re-add "$uri"

# It comes back, and with it what it has missed.
serve sock file d1
runs "re-add or add" md0 --add "$uri"
run wait md0
check "complete again" [ "$(state_of)" = '[UU]' ]
runs "check" check md0 --wait
check "no mismatch" grep -q 'no mismatch' "$T/out"
runs "fail the file" md0 --fail "$T/d0"
check "content from the network alone" "$PATTERN" verify "$file" 8
runs "stop" stop md0
check "nothing left" nothing_left md0
runs "assemble with the socket" assemble md0 --export=fuse sock d0
check "query of the socket" sh -c "'$STRAKE' --query sock | grep -q 'device active raid1'"
check "content, assembled" "$PATTERN" verify "$file" 8
runs "stop again" stop md0
runs "assemble by a scan of words" assemble --scan --export=fuse "$uri" d0
check "content, scanned" "$PATTERN" verify "$file" 8
runs "stop after the scan" stop --scan
check "content of cat" sh -c "'$STRAKE' cat sock | '$PATTERN' verify - 8 0 $size"
kill_server TERM "$server"

# With plain system calls; and a server that knows nothing but reading and writing.
rm -f d0 d1
mkd 2 48M
serve sock --filter=nozero --filter=fua --filter=noextents file d1
runs "create, a plain server" create md0 --level 1 --raid-devices 2 --homehost h --export=fuse \
	--io sync d0 sock
"$PATTERN" write "$file" 9
fallocate -p -o 1M -l 2M "$file"
runs "a plain server: check" check md0 --wait
check "a plain server: no mismatch" grep -q 'no mismatch' "$T/out"
runs "a plain server: stop" stop md0
kill_server TERM "$server"

# qemu-nbd, one client only, over a served array.
rm -f d0 d1
mkd 2 48M
rm -f sock
env -u STRAKE_RUNTIME_DIR qemu-nbd -f raw -k "$T/sock" -t d1 &
server=$!
servers="$servers $server"
check "qemu-nbd answers" until_true 10 nbdinfo "$uri"
runs "one client: create for NBD" create md0 --level 1 --raid-devices 2 --homehost h \
	"--export=nbd:$T/out.sock" d0 "$uri"
out="nbd+unix:///?socket=$T/out.sock"
truncate -s "$(nbdinfo --size "$out")" whole
"$PATTERN" write whole 10
check "one client: write" nbdcopy --flush whole "$out"
check "one client: content" sh -c "nbdcopy '$out' - | '$PATTERN' verify - 10 0 $(nbdinfo --size "$out")"
keeper=$(daemon_pid md0)
nbdkit_of() { tr -d ' ' <"/proc/$keeper/task/$keeper/children"; }
old=$(nbdkit_of)
kill -ABRT "$old"
has_other_nbdkit() { [ -n "$(nbdkit_of)" ] && [ "$(nbdkit_of)" != "$old" ]; }
check "one client: another nbdkit" until_true 10 has_other_nbdkit
check "one client: content of the other" sh -c \
	"nbdcopy '$out' - | '$PATTERN' verify - 10 0 $(nbdinfo --size "$out")"
check "one client: both members still" [ "$(state_of)" = '[UU]' ]
runs "one client: stop" stop md0
check "one client: nothing left" nothing_left md0
kill_server TERM "$server"

# Stripes over two arrays that are served: each in use until the one above has stopped.
mkd 4 24M
runs "the first below" create md1 --level 1 --raid-devices 2 --homehost h "--export=nbd:$T/s1" d0 d1
runs "the second below" create md2 --level 1 --raid-devices 2 --homehost h "--export=nbd:$T/s2" d2 d3
runs "stripes above" create md0 --level 0 --raid-devices 2 --homehost h --export=fuse s1 s2
"$PATTERN" write "$file" 11
check "stripes: content" "$PATTERN" verify "$file" 11
refused "the one below is in use" 1 'in use by NBD clients' -- stop md1
runs "all stop, from above" stop --scan
check "nothing runs" [ "$("$STRAKE" status | grep -c ' : active')" = 0 ]
check "nothing of it is left" nothing_left md0
runs "below again" assemble md1 "--export=nbd:$T/s1" d0 d1
runs "below again, too" assemble md2 "--export=nbd:$T/s2" d2 d3
runs "above again" assemble md0 --export=fuse s1 s2
check "stripes: content after all" "$PATTERN" verify "$file" 11
runs "all stop" stop --scan

# What is refused.
truncate -s 48M e0 e1
: >e2
refused "no server there" 1 'no connection' -- examine "nbd+unix:///?socket=$T/none"
refused "no socket named" 1 'names no socket' -- examine "nbd+unix:///x"
refused "no host named" 1 'names no host' -- examine "nbd:///x"
serve sock --readonly file e1
refused "read-only" 1 'read-only' -- create md0 --level 0 --raid-devices 2 --export=fuse e0 sock
kill_server TERM "$server"
serve sock --filter=blocksize-policy file e1 blocksize-minimum=4096 blocksize-preferred=4096
refused "blocks of 4096" 1 'blocks of 4096' -- \
	create md0 --level 0 --raid-devices 2 --export=fuse e0 sock
kill_server TERM "$server"
mkfs.ext4 -q -F e1 2>/dev/null
serve sock file e1
refused "a file system on it" 1 'ext4' -- \
	create md0 --level 0 --raid-devices 2 --export=fuse e0 sock
refused "named twice" 1 'same device' -- \
	create md0 --level 0 --raid-devices 2 --force --export=fuse sock "$uri"
finish
