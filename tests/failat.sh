#!/bin/sh
# SPDX-License-Identifier: MIT
# Fail at N: the Nth allocation, or the Nth call that does I/O, of a command or of an array's process
# fails, once or from then on, for N = 1, 2, 3 … until nothing fails any more. Whatever N is: an exit
# code that tells the truth, words, no crash, nothing left over, and members that are as they were or
# a whole array.
#
# By default N goes in steps, so that this takes a minute; STRAKE_FAILAT=full tries each, and
# STRAKE_FAILAT_ONLY chooses loops by an extended regular expression ("create 5 io").
. "${0%/*}/lib.sh"
requires_fuse
ldd "$STRAKE" | grep -qE 'lib(a|t|ub)san' && skip "sanitizers have allocators of their own"

LIBRARY=$(realpath "${FAILAT_LIBRARY:-$BUILD/tests/libfailat.so}")
CONTROL=$T/control
node=$STRAKE_RUNTIME_DIR/md0
RUN_SECONDS=20
head -c 16 /dev/zero >"$CONTROL"
first=1
step=1
[ "${STRAKE_FAILAT:-}" = full ] || step=${STRAKE_FAILAT:-83}

# octal NUMBER: as printf wants a byte.
octal() { printf '\\%03o' "$1"; }

# arm KIND N WHO: KIND is alloc or io, with a + if all that follow fail too; WHO: a command (and its
# background process, as long as it waits for that) or whatever is preloaded.
arm() {
	kind=1
	[ "${1%+}" = alloc ] || kind=2
	lasting=0
	[ "${1%+}" = "$1" ] || lasting=1
	who='\000\000\000\000'
	[ "$3" != command ] || who='\377\377\377\377'
	printf "$(octal $(($2 & 255)))$(octal $(($2 >> 8)))\\0\\0\\0\\0\\0\\0$(octal $kind)$(octal $lasting)\\0\\0$who" |
		dd of="$CONTROL" conv=notrunc status=none
	: >"$CONTROL.log"
}

disarm() {
	hit=$(od -An -t u1 -j 10 -N 1 "$CONTROL" | tr -d ' ')
	dd if=/dev/zero of="$CONTROL" bs=16 count=1 conv=notrunc status=none
}

# preloaded ARGUMENT…: as run, with the library.
preloaded() {
	timeout "$RUN_SECONDS" env FAILAT="$CONTROL" LD_PRELOAD="$LIBRARY" "$STRAKE" "$@" \
		>"$T/out" 2>"$T/err" </dev/null
	rc=$?
}

# Lines of what is wrong, by the judges below.
wrong() { echo "$*" >>"$T/wrong"; }

# The members that the loop started with, and back.
templates() {
	rm -rf templates
	mkdir templates
	cp --sparse=always "$@" templates/
}

restored() {
	for member in templates/*; do
		cp --sparse=always "$member" "${member#templates/}"
	done
}

unchanged() {
	for member in ${*:-templates/*}; do
		cmp -s "templates/${member#templates/}" "${member#templates/}" || return 1
	done
}

# What must hold of every command whatever failed in it.
judge_end() {
	[ $rc -lt 124 ] || wrong "exit code $rc"
	grep -qF '(null)' "$T/err" "$T/out" && wrong "(null) in its words"
	grep -qE 'signal [0-9]|Segmentation|Aborted|stack smashing|free\(\)|corrupt' "$T/err" &&
		wrong "a crash"
	[ $rc -eq 0 ] && return
	grep -qE '^strake: .*[a-z]{3}' "$T/err" || wrong "no words"
	grep -qE 'Success|^strake: *$' "$T/err" && wrong "words without sense"
}

gone() {
	! ls "$STRAKE_RUNTIME_DIR"/* 2>/dev/null | grep -q . && [ -z "$(our_mounts)" ] && no_daemons
}

# After a command that failed nothing may run.
judge_gone() {
	gone || until_true 5 gone || wrong "left: $(ls "$STRAKE_RUNTIME_DIR" | tr '\n' ' ')$(our_mounts) $(our_daemons)"
}

running() { [ -S "$STRAKE_RUNTIME_DIR/md0.sock" ] && "$STRAKE" detail md0 >/dev/null 2>&1; }

# The running array is whole, and holds what it should: pattern $1, if any.
judge_running() {
	run detail --test md0
	# Redundancy is for that: a member whose I/O fails just after the start may be lost.
	[ $rc -eq 0 ] || [ "$rc ${kind_of%+}" = "1 io" ] || wrong "it runs, but detail --test says $rc"
	[ -z "${1:-}" ] || "$PATTERN" verify "$node" "$1" >/dev/null 2>&1 || wrong "content"
	run stop md0
	[ $rc -eq 0 ] || wrong "stop: $(cat "$T/err")"
	judge_gone
}

# The members make an array that is whole. Its content is pattern $1, if any.
judge_members() {
	seed=$1
	shift
	run assemble md0 --readonly --export=fuse "$@"
	if [ $rc -ne 0 ]; then
		wrong "neither as they were nor an array: $(head -c 300 "$T/err")"
		return
	fi
	judge_running "$seed"
}

# loop NAME KINDS PREPARE FAILING JUDGE: FAILING is run armed, JUDGE after it.
loop() {
	for kind_of in $2; do
		echo "$1 $kind_of" | grep -qE "${STRAKE_FAILAT_ONLY:-.}" || continue
		n=$first
		stride=$step
		[ "${kind_of%+}" = alloc ] || stride=$(((step + 5) / 6)) # of these there are fewer
		hit=1
		bad=0
		tried=0
		while [ "$hit" = 1 ] && [ $n -lt 5000 ] && [ $bad -lt 5 ]; do
			"$3"
			: >"$T/wrong"
			"$4" "$kind_of" $n
			disarm
			cp "$T/err" "$T/first.err"
			cp "$CONTROL.log" "$T/first.log"
			code=$rc
			judge_end
			"$5"
			[ -s "$T/wrong" ] && bad=$((bad + 1)) && tell && clear
			n=$((n + stride))
			tried=$((tried + 1))
		done
		# The last one met no failure any more: it must have succeeded.
		[ $code -eq 0 ] || { not_ok "$1 $kind_of: fails without a failure" && explain "$T/first.err"; }
		check "$1: $kind_of: $tried numbers up to $((n - stride))" [ $bad -eq 0 ]
	done
}

# What was left must not spoil what follows.
clear() {
	for pid in $(our_daemons); do kill -9 "$pid"; done
	run stop md0
}

tell() {
	echo "# $kind_of number $n: exit code $code"
	explain "$T/wrong"
	echo "#   it said:"
	explain "$T/first.err"
	echo "#   where:"
	grep 'failed in' "$T/first.log" | head -n 1 | sed 's/^/#      /'
	addr2line -fspe "$STRAKE" $(grep -oE 'strake\(\+0x[0-9a-f]+' "$T/first.log" | head -n 12 |
		sed 's/.*+//') 2>/dev/null | sed 's/^/#      /'
}

# Commands that start an array ---------------------------------------------------------------------

starting() {
	kind=$1 number=$2
	arm "$kind" "$number" command
	preloaded $command
}

# Of create: put back, or whole. Where all I/O fails what it wrote cannot be put back: that is said.
judge_create() {
	if [ $code -eq 0 ]; then
		judge_running
		return
	fi
	judge_gone
	unchanged && return
	grep -q 'could not be put back' "$T/first.err" && [ "$kind_of" = io+ ] && return
	judge_members "" d0 d1 d2
}

creates() {
	mkd 3 6M
	"$STRAKE" create old --level 0 --export=none --quiet d0 d1 d2 || give_up "create of what is there before"
	# Without data, or a resync would begin, and with it I/O without end.
	templates d0 d1 d2
	command="create md0 --level $1 --raid-devices 3 --run --export=fuse --io=sync ${2:-} d0 d1 d2"
	loop "create level $1 ${2:-}" "alloc alloc+ io io+" restored starting judge_create
}

judge_assemble() {
	if [ $code -eq 0 ]; then
		judge_running 1
		return
	fi
	judge_gone
	unchanged || judge_members 1 d0 d1 d2
}

# An array with pattern 1, stopped.
array() {
	mkd 3 6M
	runs "an array of level $1" create md0 --level "$1" --raid-devices 3 --run --export=fuse \
		${2:-} d0 d1 d2 || give_up "no array"
	"$PATTERN" write "$node" 1 >/dev/null || give_up "no content"
	run stop md0
}

assembles() {
	array "$1" "${2:-}"
	templates d0 d1 d2
	command="assemble md0 --export=fuse --io=sync d0 d1 d2"
	loop "assemble level $1" "alloc alloc+ io io+" restored starting judge_assemble
}

# Commands that only tell --------------------------------------------------------------------------

judge_output() {
	[ $code -ne 0 ] || cmp -s "$T/out" expected || wrong "exit code 0, but other output"
	unchanged || wrong "a member was written"
}

nothing() { :; }

tells() {
	array 5 --bitmap=internal
	templates d0 d1 d2
	for command in "examine d0 d1" "examine --json d0" "examine --scan d0 d1 d2" \
		"examine --examine-bitmap d0" "cat --length 64K d0 d1 d2" "query d0"; do
		"$STRAKE" $command >expected 2>/dev/null
		loop "$command" "alloc io" nothing starting judge_output
	done
	run assemble md0 --readonly --export=fuse d0 d1 d2
	for command in "detail md0" "detail --json md0" "status" "wait md0"; do
		"$STRAKE" $command >expected 2>/dev/null
		settled "$command"
	done
	run stop md0
}

# Some commands tell what changes (times, counters): only those lines' presence is compared.
settled() {
	[ "$1" != "wait md0" ] || return 0
	loop "$1" "alloc io" nothing starting judge_facts
}

judge_facts() {
	[ $code -ne 0 ] || [ "$(wc -l <"$T/out")" = "$(wc -l <expected)" ] ||
		wrong "exit code 0, but other output: $(diff "$T/out" expected | head -n 3)"
}

# Commands on a running array: what fails is in the command, or in the array's process ----------------

# d0 and d1 of a mirror of three run; e0 is to come. Pattern 1 is their content.
runs_degraded() {
	restored
	run assemble md0 --run --export=fuse --io=sync d0 d1
	[ $rc -eq 0 ] || give_up "the array does not start: $(cat "$T/err")"
}

runs_preloaded() {
	restored
	preloaded assemble md0 --run --export=fuse --io=sync d0 d1
	[ $rc -eq 0 ] || give_up "the array does not start: $(cat "$T/err")"
}

asking() {
	arm "$1" "$2" command
	preloaded $command
}

# The array's own process may be met at any time, by all that it does meanwhile.
serving() {
	arm "$1" "$2" any
	run $command
}

# A member that met a failed I/O may be gone; the others hold the content.
judge_degraded() {
	if ! running; then
		wrong "the array does not run any more"
		run stop md0
		return
	fi
	"$PATTERN" verify "$node" 1 >/dev/null 2>&1 || wrong "content"
	run wait md0
	"$PATTERN" verify "$node" 1 >/dev/null 2>&1 || wrong "content after it"
	run stop md0
	# A last copy that failed is told of at every step.
	[ $rc -eq 0 ] || grep -q 'may not be on the members' "$T/err" || wrong "stop: $(cat "$T/err")"
	judge_gone
	judge_readable
}

judge_readable() {
	run assemble md0 --readonly --run --export=fuse d0 d1 e0
	[ $rc -eq 0 ] || run assemble md0 --readonly --run --export=fuse d0 d1
	if [ $rc -ne 0 ]; then
		wrong "its members do not make an array: $(head -c 300 "$T/err")"
		return
	fi
	"$PATTERN" verify "$node" 1 >/dev/null 2>&1 || wrong "content of the members"
	run stop md0
}

role_of() { "$STRAKE" examine "$1" 2>/dev/null | sed -n 's/.*Device Role : //p'; }

judge_add() {
	if running && [ $code -eq 0 ]; then
		"$STRAKE" detail md0 | grep -qF e0 || wrong "exit code 0, but e0 is no member"
	elif running && ! "$STRAKE" detail md0 | grep -qF e0; then
		unchanged e0 || wrong "refused, but e0 was written"
	fi
	judge_degraded
}

judge_remove() {
	if running && [ $code -eq 0 ]; then
		! "$STRAKE" detail md0 | grep -qF "$T/d1" || wrong "exit code 0, but d1 is there"
	fi
	judge_degraded
}

judge_stop() {
	if [ $code -ne 0 ] && running; then
		judge_degraded
		return
	fi
	judge_gone
	judge_readable
}

changes() {
	array 1 --bitmap=internal
	truncate -s 6M e0
	"$STRAKE" create old --level 0 --export=none --quiet e0 --force --raid-devices 1 ||
		give_up "what e0 holds"
	templates d0 d1 e0
	command="add md0 --force $T/e0"
	loop "add: the command" "alloc io" runs_degraded asking judge_add
	loop "add: the array" "alloc alloc+ io" runs_preloaded serving judge_add
	command="md0 --fail $T/d1 --remove $T/d1"
	loop "fail and remove: the command" "alloc io" runs_degraded asking judge_remove
	loop "fail and remove: the array" "alloc alloc+ io" runs_preloaded serving judge_remove
	command="stop md0"
	loop "stop: the command" "alloc alloc+ io io+" runs_degraded asking judge_stop
	loop "stop: the array" "alloc alloc+ io" runs_preloaded serving judge_stop
}

creates 0
creates 1 --bitmap=internal
creates 5
assembles 0
assembles 5
tells
changes
check "nothing runs" until_true 5 gone
finish
