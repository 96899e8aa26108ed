#!/bin/sh
# SPDX-License-Identifier: MIT
# An ordinary user: FUSE file through fusermount3, NBD on a Unix socket, state in XDG_RUNTIME_DIR.
. "${0%/*}/../lib.sh"
requires_fuse
requires_nobody
requires nbdcopy nbdinfo

mkdir -m 700 home
chown nobody:nogroup home
XDG_RUNTIME_DIR=$T/home
export XDG_RUNTIME_DIR
cat >as-user <<EOS
#!/bin/sh
unset STRAKE_RUNTIME_DIR
exec setpriv --reuid=nobody --regid=nogroup --clear-groups "\$@"
EOS
chmod +x as-user
STRAKE_RUNTIME_DIR=$T/home/strake # where cleanup looks
export STRAKE_RUNTIME_DIR
program=$STRAKE
printf '#!/bin/sh\nexec "%s/as-user" "%s" "$@"\n' "$T" "$program" >strake
chmod +x strake
STRAKE=$T/strake
user() {
	"$T/as-user" "$@"
}

cd home || exit 1
mkd 2 16M
chown nobody:nogroup d0 d1
runs "create" create md0 --level 0 --chunk 64 --raid-devices 2 --export=none d0 d1
runs "assemble --export=fuse" assemble md0 --export=fuse d0 d1 || finish
check "the socket is in XDG_RUNTIME_DIR/strake" [ -S "$T/home/strake/md0.sock" ]
check "write" user "$PATTERN" write "$T/home/strake/md0" 1
check "read" user "$PATTERN" verify "$T/home/strake/md0" 1
runs "detail" detail md0
runs "status" status
check "status: the array" grep -q '^md0 : active' "$T/out"
runs "stop" stop md0
check "nothing left" nothing_left md0

runs "assemble --export=nbd" assemble md0 "--export=nbd:$T/home/nbd" d0 d1 || finish
size=$(user nbdinfo --size "nbd+unix:///?socket=$T/home/nbd")
user nbdcopy "nbd+unix:///?socket=$T/home/nbd" - | "$PATTERN" verify - 1 0 "$size"
check "NBD: read" [ $? = 0 ]
runs "stop" stop md0
check "the NBD socket is gone" [ ! -e "$T/home/nbd" ]

runs "without being told which export" assemble md0 d0 d1
runs "detail" detail --json md0
check "it is the FUSE file" [ "$(json export)" = fuse ]
runs "stop" stop md0

chown root d1
chmod 600 d1
snap d0 d1
refused "a member that the user may not read" 1 'd1' 'permission denied' -- \
	assemble md0 --export=fuse d0 d1
same "a member that the user may not read"
chown nobody d1
unset XDG_RUNTIME_DIR
refused "no XDG_RUNTIME_DIR" 1 'XDG_RUNTIME_DIR' -- assemble md0 --export=fuse d0 d1
finish
