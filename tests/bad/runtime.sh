#!/bin/sh
# SPDX-License-Identifier: MIT
# Places and devices that strake needs and does not get: sockets' directory, /dev/fuse, loop devices.
. "${0%/*}/../lib.sh"

mkd 2 16M
create_pair md0
snap d0 d1

# A file stands where the directory should be: not even root can write there.
: >file
STRAKE_RUNTIME_DIR=$T/file
refused "runtime directory is a file" 1 "$T/file" 'directory' -- assemble md0 --export=fuse d0 d1
STRAKE_RUNTIME_DIR=$T/file/deeper
refused "runtime directory below a file" 1 "$T/file" 'directory' -- assemble md0 --export=fuse d0 d1
long=$T/$(printf '%0200d' 0)
mkdir "$long"
STRAKE_RUNTIME_DIR=$long
runs "runtime directory longer than a socket address: assemble" assemble md0 --export=fuse d0 d1
runs "runtime directory longer than a socket address: detail" detail md0
runs "runtime directory longer than a socket address: stop" stop md0
STRAKE_RUNTIME_DIR=$T/run
same "no runtime directory"

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$T"
	chmod 666 d0 d1
	mkdir -m 755 closed
	if as_nobody test -x "$STRAKE"; then
		program=$STRAKE
		printf '#!/bin/sh\nexec setpriv --reuid=nobody --regid=nogroup --clear-groups %s "$@"\n' \
			"$program" >as-nobody
		chmod +x as-nobody
		STRAKE=$T/as-nobody
		STRAKE_RUNTIME_DIR=$T/closed
		refused "directory not writable" 1 "$T/closed" 'permission denied' -- \
			assemble md0 --export=fuse d0 d1
		STRAKE_RUNTIME_DIR=$T/closed/deeper
		refused "directory cannot be made" 1 "$T/closed" 'permission denied' -- \
			assemble md0 --export=fuse d0 d1
		STRAKE_RUNTIME_DIR=$T/run
		check "nothing left there" [ -z "$(ls closed)" ]
		STRAKE=$program
	fi
	same "unwritable directory"
fi

# A private /dev with only what the arguments name. The script runs inside, with run, refused, ….
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo "# not looked at: no /dev/fuse, no loop devices: needs root and mount namespaces"
	finish
fi

# in_dev NODES… -- ARGUMENT…: run strake where /dev holds null, zero, urandom and NODES.
mkdir dev
cat >in-dev <<EOS
#!/bin/sh
[ -n "\${IN_DEV:-}" ] || IN_DEV=1 exec unshare -m --propagation private "\$0" "\$@"
mount -t tmpfs dev "$T/dev"
for node in null zero urandom \$NODES; do
	[ ! -e "/dev/\$node" ] || cp -a "/dev/\$node" "$T/dev/\$node"
done
mount --move "$T/dev" /dev
"$STRAKE" "\$@"
code=\$?
[ -z "\${THEN:-}" ] || sh -c "\$THEN" || code=99
exit \$code
EOS
chmod +x in-dev
program=$STRAKE
NODES=
THEN=
export NODES THEN
STRAKE=$T/in-dev
refused "no /dev/fuse, FUSE asked for" 1 '/dev/fuse' -- assemble md0 --export=fuse d0 d1
refused "no /dev/fuse, loop asked for" 1 '/dev/fuse' -- assemble md0 --export=loop d0 d1
NODES=fuse
refused "no loop devices, loop asked for" 1 'loop' -- assemble md0 --export=loop d0 d1
STRAKE=$program
check "nothing left" nothing_left md0
same "no /dev/fuse, no loop devices"

# Without being asked for one, strake takes the best export there is.
STRAKE=$T/in-dev
THEN="'$program' detail --json md0 >'$T/detail'; '$program' stop md0"
NODES=fuse
runs "no loop devices, nothing asked for" assemble md0 d0 d1
check "no loop devices: a FUSE file" grep -q '"export": *"fuse"' "$T/detail"
NODES=
runs "no /dev/fuse, nothing asked for" assemble md0 d0 d1
check "no /dev/fuse: an NBD socket" grep -q '"export": *"nbd"' "$T/detail"
STRAKE=$program
check "nothing left" nothing_left md0
same "best export"
finish
