# SPDX-License-Identifier: MIT
# Booting user-mode-linux with the real md in it. Sourced after lib.sh.

UML_XSTATE=${UML_XSTATE:-$BUILD/tests/libumlxstate.so}

requires_uml() {
	requires linux.uml mdadm
	uml_modules=$(find /usr/lib/uml/modules -name md-mod.ko 2>/dev/null | head -n 1)
	[ -n "$uml_modules" ] || skip "user-mode-linux comes without the md module"
}

# boot NAME SECONDS: run the script on standard input as the guest's init, as root, in $T, with hostfs
# as its root file system: it sees this machine's files. What it finds out it writes into files.
# Console: NAME.console. May run in the background; `booted NAME` then tells whether it got to its end.
boot() {
	[ -z "${UML_LONG:-}" ] || set -- "$1" $(($2 * 20))
	cat >"$T/$1.init" <<-HEAD
		#!/bin/sh
		PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC MDADM_NO_UDEV=1 T='$T' PATTERN='$PATTERN'
		export PATH LC_ALL TZ MDADM_NO_UDEV
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
		mount -t tmpfs tmpfs /run
		hostname oracle
		modules=/usr/lib/uml/modules/\$(uname -r)
		for m in md-mod linear raid0 "loop max_loop=80"; do
			insmod "\$(find "\$modules" -name \${m%% *}.ko)" \${m#"\${m%% *}"} ||
				echo "guest: no module \$m"
		done
		cd '$T'
		# attach FILE...: as loop devices, whose names are left in \$loops
		attach() {
			loops=
			number=0
			for file in "\$@"; do
				losetup /dev/loop\$number "\$file" || echo "guest: losetup \$file failed"
				loops="\$loops /dev/loop\$number"
				number=\$((number + 1))
			done
		}
		detach() {
			mdadm --stop /dev/md0
			losetup -d \$loops
		}
	HEAD
	cat >>"$T/$1.init"
	cat >>"$T/$1.init" <<-TAIL
		sync
		echo done >'$T/$1.done'
		sync
		halt -f -p
	TAIL
	chmod +x "$T/$1.init"
	rm -f "$T/$1.done"
	LD_PRELOAD=$UML_XSTATE timeout -k 5 "$2" linux.uml mem=512M root=/dev/root \
		rootfstype=hostfs rootflags=/ rw uml_dir="$T/" umid="guest-$1" init="$T/$1.init" \
		con=null con0=fd:0,fd:1 quiet </dev/null >"$T/$1.console" 2>&1
}

# pull_plug NAME: the guest ends at once, with all that its kernel has not written yet. `timeout` made
# a process group for it and its helpers.
pull_plug() {
	plug_pid=$(cat "$T/guest-$1/pid") || return 1
	plug_group=$(ps -o pgid= "$plug_pid" | tr -d ' ')
	[ "$plug_group" != "$(ps -o pgid= $$ | tr -d ' ')" ] && kill -9 "-$plug_group"
}

booted() {
	check "the guest $1 ran to its end" [ -f "$T/$1.done" ]
	[ -f "$T/$1.done" ] || tail -n 40 "$T/$1.console" | explain
}
