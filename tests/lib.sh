# SPDX-License-Identifier: MIT
# Helpers of the whole-system tests: POSIX sh, to be sourced as `. "${0%/*}/../lib.sh"`.
#
# A script prints `ok - what` or `not ok - what` for each thing it looked at and ends with
# `finish`: 0 if all were ok, 1 if not, 77 (with the reason) if something it needs is absent.
# It runs in a private folder, $T, with its own STRAKE_RUNTIME_DIR; whatever it started there is
# ended when it ends, however it ends.

set -u
LC_ALL=C.UTF-8
TZ=UTC
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL TZ PATH

TESTS=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(realpath "${BUILD:-$TESTS/../build}")
STRAKE=$(realpath "${STRAKE:-$BUILD/strake}")
PATTERN=$(realpath "${PATTERN:-$BUILD/tests/pattern}")
SUPEREDIT=$(realpath "${SUPEREDIT:-$BUILD/tests/superedit}")
[ -x "$STRAKE" ] || { echo "not ok - the program, $STRAKE, is not built" && exit 1; }
T=$(mktemp -d "${TMPDIR:-/tmp}/strake-test.XXXXXX") || exit 1
STRAKE_RUNTIME_DIR=$T/run
export STRAKE_RUNTIME_DIR
failures=0
looked=0
rc=0

# Processes whose environment names this test's runtime directory: the daemons it started.
our_daemons() {
	# No other program may run beside the search: it would have that environment too.
	for environ in $(env -u STRAKE_RUNTIME_DIR grep -lzxF \
		"STRAKE_RUNTIME_DIR=$STRAKE_RUNTIME_DIR" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${environ#/proc/}
		pid=${pid%/environ}
		[ "$pid" = $$ ] || echo "$pid"
	done
}

our_mounts() {
	awk -v t="$T/" 'index($5, t) == 1 { print $5 }' /proc/self/mountinfo | sort -r
}

our_loops() {
	losetup -nlO NAME,BACK-FILE 2>/dev/null | awk -v t="$T/" 'index($2, t) == 1 { print $1 }'
}

unmount_ours() {
	our_mounts | while read -r point; do
		point=$(printf '%b' "$point")
		umount "$point" 2>/dev/null || umount -l "$point" 2>/dev/null ||
			fusermount3 -uz "$point" 2>/dev/null
	done
}

# The mount table tells nothing of file systems on loops over our files: ask the loops.
unmount_loops() {
	for loop in $(our_loops); do
		awk -v d="$loop" 'index($0, " " d " ") || index($0, " " d "p") { print $5 }' \
			/proc/self/mountinfo | while read -r point; do umount "$point"; done
	done
}

cleanup() {
	status=$?
	trap - EXIT HUP INT TERM
	cd /
	unmount_loops 2>/dev/null
	for socket in "$STRAKE_RUNTIME_DIR"/*.sock; do
		[ -S "$socket" ] || continue
		name=${socket##*/}
		timeout 10 "$STRAKE" stop "${name%.sock}" >/dev/null 2>&1 </dev/null
	done
	for pid in $(our_daemons); do kill -9 "$pid" 2>/dev/null; done
	for loop in $(our_loops); do losetup -d "$loop" 2>/dev/null; done
	unmount_ours
	if [ -n "${STRAKE_TEST_KEEP:-}" ]; then
		echo "# kept: $T"
	else
		rm -rf "$T"
	fi
	exit $status
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

ok() {
	looked=$((looked + 1))
	echo "ok - $*"
}

not_ok() {
	looked=$((looked + 1))
	failures=$((failures + 1))
	echo "not ok - $*"
}

# Lines of what went wrong, below a `not ok`.
explain() {
	sed 's/^/#   /' "$@" | cut -c1-500 | head -n 40
}

# check WHAT COMMAND…: ok if the command succeeds.
check() {
	check_what=$1
	shift
	if "$@" >"$T/.check" 2>&1; then
		ok "$check_what"
		return 0
	fi
	not_ok "$check_what"
	echo "#   failed: $*" | cut -c1-500
	explain "$T/.check"
	return 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# The rest of the script cannot run without what just failed.
give_up() {
	not_ok "$*"
	finish
}

finish() {
	[ "$looked" -gt 0 ] || not_ok "the script looked at nothing"
	[ "$failures" -eq 0 ]
	exit
}

requires() {
	for requires_program; do
		command -v "$requires_program" >/dev/null || skip "$requires_program is not installed"
	done
}

requires_root() {
	[ "$(id -u)" = 0 ] || skip "must be run as root"
}

requires_fuse() {
	[ -w /dev/fuse ] || skip "/dev/fuse is not there or not writable"
	requires fusermount3
}

requires_loops() {
	requires_root
	requires losetup
	losetup -f >/dev/null 2>&1 || skip "no free loop device"
}

# mkd N SIZE: sparse members d0 … d(N-1) in the private folder, which is the working directory.
mkd() {
	mkd_i=0
	while [ "$mkd_i" -lt "$1" ]; do
		rm -f "d$mkd_i"
		truncate -s "$2" "d$mkd_i" || exit 1
		mkd_i=$((mkd_i + 1))
	done
}

# snap FILE…; later `same WHAT` is ok if no byte and no size of them changed.
snap() {
	sha256sum -- "$@" >"$T/.snap" || exit 1
}

same() {
	check "$1: no member changed" sha256sum --quiet -c "$T/.snap"
}

# run ARGUMENT…: strake with its output in $T/out and $T/err and its exit code in $rc.
run() {
	timeout "${RUN_SECONDS:-30}" "$STRAKE" "$@" >"$T/out" 2>"$T/err" </dev/null
	rc=$?
}

# runs WHAT ARGUMENT…: ok if strake exits with 0.
runs() {
	runs_what=$1
	shift
	run "$@"
	[ $rc -eq 0 ] && ok "$runs_what" && return 0
	not_ok "$runs_what (exit code $rc)"
	echo "#   command: strake $*" | cut -c1-500
	explain "$T/err"
	return 1
}

# How a message tells what to do next. Wide on purpose: it is about there being such words at all.
NEXT_STEP='use |try |give |check |stop |unmount|umount|choose |remove |install |name |make |add |set '
NEXT_STEP="$NEXT_STEP|run |free |say |see |list |load |wait |only |must |need|--[a-z]|mount |detach|write "
NEXT_STEP="$NEXT_STEP|compare |let |release |end |pass |create |start |select |pick |chmod|rename|shorten"

# refused WHAT CODES [WORDS…] -- ARGUMENT…: strake must exit with one of CODES; what it says on
# standard error must start with its name and hold each of WORDS (extended regular expressions,
# any case) and a next step.
refused() {
	refused_what=$1
	refused_codes=$2
	shift 2
	: >"$T/words"
	while [ "$1" != -- ]; do
		printf '%s\n' "$1" >>"$T/words"
		shift
	done
	shift
	run "$@"
	case " $refused_codes " in
	*" $rc "*) ok "$refused_what: exit code" ;;
	*)
		not_ok "$refused_what: exit code is $rc, should be one of: $refused_codes"
		echo "#   command: strake $*" | cut -c1-500
		explain "$T/err"
		;;
	esac
	says "$refused_what"
}

# says WHAT: the message in $T/err against the words in $T/words.
says() {
	says_missing=
	head -n 1 "$T/err" | grep -q '^strake' || says_missing="does not start with the program's name"
	while read -r says_word; do
		grep -qiE -e "$says_word" "$T/err" || says_missing="$says_missing; no word of: $says_word"
	done <"$T/words"
	grep -qiE -e "$NEXT_STEP" "$T/err" || says_missing="$says_missing; no next step"
	grep -qiE 'assert|segmentation|core dumped|sanitizer' "$T/err" &&
		says_missing="$says_missing; a crash"
	if [ -z "$says_missing" ]; then
		ok "$1: message"
	else
		not_ok "$1: message: $says_missing"
		explain "$T/err"
	fi
}

# until_true SECONDS COMMAND…: poll until the command succeeds.
until_true() {
	until_end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$until_end" ] || return 1
		sleep 0.1
	done
}

# json KEY: the first scalar value of "KEY" in $T/out.
json() {
	tr -d '\n' <"$T/out" | grep -oE "\"$1\": *(\"[^\"]*\"|[^,} ]*)" | head -n 1 |
		sed -E 's/^"[^"]*": *//; s/^"(.*)"$/\1/'
}

daemon_pid() {
	run detail --json "$1"
	json pid
}

# A raid 0 over d0, d1 named $1, metadata only; the rest are more arguments.
create_pair() {
	create_name=$1
	shift
	runs "create $create_name" create "$create_name" --level 0 --raid-devices 2 --export=none \
		"$@" d0 d1
}

# super_at FILE METADATA: the byte where its superblock starts (specification 1.1 and 2.1).
super_at() {
	super_sectors=$(($(stat -Lc %s "$1") / 512))
	case $2 in
	0.90) echo $((((super_sectors & ~127) - 128) * 512)) ;;
	1.0) echo $((((super_sectors - 16) & ~7) * 512)) ;;
	1.1) echo 0 ;;
	1.2) echo 4096 ;;
	esac
}

# Nothing of array $1 may be left: socket, file, mount, loop, link; and the process ends.
nothing_left() {
	left=$(ls -d "$STRAKE_RUNTIME_DIR/$1.sock" "$STRAKE_RUNTIME_DIR/$1" "/dev/$1" "/dev/md/$1" 2>/dev/null
		our_mounts
		our_loops)
	until_true 5 no_daemons || left="$left processes: $(our_daemons)"
	[ -z "$left" ] || { echo "left: $left" && return 1; }
}

no_daemons() {
	[ -z "$(our_daemons)" ]
}

# A build folder in /root is closed to others: what they need of it, in a place that is not.
copy_program() {
	mkdir -p "$T/program/src/export/nbd"
	cp "$STRAKE" "$PATTERN" "$T/program/"
	cp "$BUILD"/src/export/nbd/*.so "$T/program/src/export/nbd/"
	STRAKE=$T/program/strake
	PATTERN=$T/program/pattern
}

# requires_nobody: to run as an ordinary user one must be root, and be able to see the program then.
requires_nobody() {
	requires_root
	requires setpriv
	chmod 755 "$T"
	as_nobody test -x "$STRAKE" || copy_program
	as_nobody test -x "$STRAKE" || skip "an ordinary user cannot reach $STRAKE"
}

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
}

cd "$T" || exit 1
