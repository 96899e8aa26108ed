#!/bin/sh
# SPDX-License-Identifier: MIT
# Members that fail, leave, come, are replaced, at each level with redundancy.
. "${0%/*}/../lib.sh"
requires_fuse
RUN_SECONDS=60

node=$STRAKE_RUNTIME_DIR/md0

# What the superblock of a member says that it is.
role_of() { "$STRAKE" examine "$1" | sed -n 's/.*Device Role : //p'; }
waits() {
	run wait md0
	check "$1: nothing is left to wait for" sh -c "! '$STRAKE' wait md0 >/dev/null 2>&1"
}
content() { check "$1: content" "$PATTERN" verify "$node" 1; }

# life LEVEL MEMBERS [OPTION…]: members are d0 …; e0 … are others of the same size.
life() {
	level=$1 count=$2
	shift 2
	at="raid $level"
	rm -f d? e? small
	mkd "$count" 24M
	for i in 0 1 2; do truncate -s 24M e$i; done
	members=$(ls d?)
	runs "$at: create" create md0 --level "$level" --raid-devices "$count" --assume-clean \
		--export=fuse "$@" $members || return
	check "$at: write" "$PATTERN" write "$node" 1
	size=$(stat -Lc %s "$node")

	# Refused: nothing is written.
	snap $members e0 e1 e2
	truncate -s 5M small
	dd if=/dev/zero of=small bs=1M count=1 conv=notrunc status=none
	mke2fs -q -F e0 2>/dev/null
	snap e0 small $members
	refused "$at: add what holds a file system" 1 'ext' -- md0 --add e0
	refused "$at: add what is too small" 1 'small' 'KiB' -- md0 --add small
	refused "$at: add a member" 1 'd0' 'already' -- md0 --add d0
	refused "$at: add nothing" 1 'nothere' -- md0 --add nothere
	refused "$at: re-add a stranger" 1 'superblock' -- md0 --re-add small
	refused "$at: fail a stranger" 1 'no member' -- md0 --fail e0
	refused "$at: remove a member in use" 2 'hot remove failed for d1' 'fail it first' -- \
		md0 --remove d1
	refused "$at: replace without a spare" 1 'spare' -- md0 --replace d0
	run wait md0
	check "$at: wait for nothing: exit code" [ $rc = 1 ]
	same "$at: refused"
	content "$at: refused"

	# One fails, and another takes its place.
	runs "$at: fail" md0 --fail d1
	check "$at: fail: mdadm's words" grep -qx 'strake: set d1 faulty in md0' "$T/err"
	content "$at: degraded"
	check "$at: degraded: write" "$PATTERN" write "$node" 2
	check "$at: degraded: read" "$PATTERN" verify "$node" 2
	runs "$at: remove" md0 --remove d1
	check "$at: remove: mdadm's words" grep -qx 'strake: hot removed d1 from md0' "$T/err"
	check "$at: remove: it is nobody's now" flock -n d1 true
	runs "$at: add" md0 --add e1
	check "$at: add: mdadm's words" grep -qx 'strake: added e1' "$T/err"
	waits "$at: add"
	check "$at: add: it is in the slot" [ "$(role_of e1)" = "Active device 1" ]
	check "$at: rebuilt: read" "$PATTERN" verify "$node" 2
	runs "$at: rebuilt: check" check md0 --wait
	check "$at: rebuilt: no mismatch" grep -q 'no mismatch' "$T/out"
	check "$at: write" "$PATTERN" write "$node" 1

	# Several steps in one line; force over what it holds; a spare that waits.
	runs "$at: in one line" md0 --fail e1 --remove e1 --add e2
	waits "$at: in one line"
	runs "$at: add by force" add md0 --force e0
	check "$at: spare" [ "$(role_of e0)" = "spare" ]
	runs "$at: check with the spare there" check md0 --wait
	runs "$at: a spare takes over" md0 -f d0
	waits "$at: a spare takes over"
	check "$at: a spare takes over: slot" [ "$(role_of e0)" = "Active device 0" ]
	content "$at: a spare has taken over"
	runs "$at: remove all that failed" md0 --remove failed
	check "$at: remove all that failed: words" grep -q 'hot removed .*d0 from md0' "$T/err"

	# Replacement: the old one serves until the new one is there.
	runs "$at: spare to replace with" md0 --add-spare d0
	runs "$at: replace" md0 --replace e0 --with d0
	check "$at: replace: mdadm's words" grep -q 'Marked e0 (device 0 in md0) for replacement' "$T/err"
	waits "$at: replace"
	check "$at: replace: slot" [ "$(role_of d0)" = "Active device 0" ]
	content "$at: replaced"
	runs "$at: remove the replaced one" md0 --remove e0

	# A member whose file is deleted.
	rm e2
	runs "$at: fail and remove what is detached" md0 --fail detached --remove detached
	check "$at: detached: words" grep -q 'hot removed .*e2 from md0' "$T/err"
	content "$at: detached"
	runs "$at: add the first one again" md0 --add d1
	waits "$at: add the first one again"
	content "$at: at the end"
	runs "$at: stop" stop md0
	check "$at: nothing left" nothing_left md0
	"$STRAKE" cat $members | "$PATTERN" verify - 1 0 "$size"
	check "$at: cat of the members at the end" [ $? = 0 ]
}

requires mke2fs flock
life 1 2
life 5 3
life 6 4
life 10 4
finish
