# SPDX-License-Identifier: MIT
# Sourced by guests' scripts that deal with levels with redundancy.

for m in async_tx xor async_memcpy async_xor raid6_pq async_pq async_raid6_recov raid1 raid10 raid456; do
	insmod "$(find "$modules" -name $m.ko)" 2>/dev/null || echo "guest: no module $m"
done
limit_speed() { # limit_speed KIB-PER-SECOND
	echo "$1" >/proc/sys/dev/raid/speed_limit_min
	echo "$1" >/proc/sys/dev/raid/speed_limit_max
}
limit_speed 1000000
md=/sys/block/md0/md

# Arrays that are assembled stay as they are, whatever is pending, until it is said.
auto_readonly() {
	echo "$1" >/sys/module/md_mod/parameters/start_ro
}

# is_idle [MD]: nothing runs, nothing is about to
is_idle() {
	case $(cat "/sys/block/${1:-md0}/md/sync_action") in idle) ;; *) return 1 ;; esac
}

# settle [MD]: until nothing runs. A thread that has to look first is given a moment.
settle() {
	calm=0
	until [ $calm -ge 3 ]; do
		sleep 0.03
		if is_idle "${1:-md0}"; then calm=$((calm + 1)); else calm=0; fi
	done
}

quiet_check() { # quiet_check [MD]: all copies and parity agree: check finds no mismatch
	echo check >"/sys/block/${1:-md0}/md/sync_action"
	until is_idle "${1:-md0}"; do sleep 0.02; done
	[ "$(cat "/sys/block/${1:-md0}/md/mismatch_cnt")" = 0 ]
}

# stops_at SECTORS: until the background action has come to sync_max
stops_at() {
	tries=0
	until [ "$(sed 's, .*,,' $md/sync_completed)" = "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "guest: never came to $1: $(cat $md/sync_completed)" && return 1; }
		sleep 0.02
	done
}

# stands_still: no background action. One that is just about to begin has to be told again.
stands_still() {
	tries=0
	until echo frozen >$md/sync_action && [ "$(cat $md/sync_completed)" = none ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "guest: never came to stand still: $(cat $md/sync_completed)" && return 1; }
		sleep 0.05
	done
}

# removed LOOP: fails, and leaves as soon as nothing of it is in flight
removed() {
	mdadm /dev/md0 --fail "$1" || return 1
	tries=0
	until mdadm /dev/md0 --remove "$1" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "guest: $1 is not removed" && return 1; }
		sleep 0.02
	done
}

# bitmaps: what mdadm says of those on $loops. Of files it thinks that they are bitmaps themselves.
bitmaps() {
	for loop in $loops; do mdadm --examine-bitmap "$loop" 2>&1 | sed 1d; done
}
