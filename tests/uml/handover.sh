#!/bin/sh
# SPDX-License-Identifier: MIT
# Taken over in the middle: md stops in the middle of a recovery, a resync or a replacement, and strake
# goes on from there; and the other way round. Two boots of user-mode-linux.
. "${0%/*}/../lib.sh"
. "$TESTS/uml/boot.sh"
. "$TESTS/uml/compare.sh"

requires_uml
requires_fuse
requires python3
node=$STRAKE_RUNTIME_DIR/md0

mkdir md us results
cp "$TESTS/uml/redundant_cases.sh" cases.sh
cp "$TESTS/uml/guest.sh" guest.sh
cat >>cases.sh <<'EOC'
# the files of an array: those that make it (member 1 is the one that leaves), the one that joins,
# and all that belong to it in the end
first_files() { case_files "$1"; }
new_file() { echo "$1/$name.new"; }
last_files() {
	for file in $(case_files "$1"); do
		[ "$kind" != resync ] && [ "$file" = "$1/$name.1" ] && file=$(new_file "$1")
		echo "$file"
	done
}
# in the middle of a replacement the old one still serves
middle_files() {
	last_files "$1"
	[ "$kind" != replace ] || echo "$1/$name.1"
}
# without the one that is not whole yet
kept_files() { case_files "$1" | grep -v "\.$drop\$" | sed "s,^$1/$name\.1\$,$(new_file "$1"),"; }
# members hold what no level could call consistent
garbage() {
	head -c 6M /dev/urandom >"$1/garbage"
	for file in $(first_files "$1"); do
		dd if="$1/garbage" of="$file" bs=64k seek=32 conv=notrunc status=none
		dd if=/dev/urandom of="$file" bs=64k seek=$((40 + seed % 5)) count=40 conv=notrunc status=none
	done
}
make_files() { truncate -s "$2" $(first_files "$1") $(new_file "$1"); }
# with garbage below only a part is written, which reaches behind the position
written_bytes() { echo $((($1 * 5 / 8) & ~511)); }
# RAID 4 and 5 would build their last member instead
resync_options() { case $level in 4 | 5) echo --force ;; esac; }
EOC
. ./cases.sh
case ${UML_LONG:-} in
'') cases_handover ;;
*) cases_handover_long ;;
esac | awk '!seen[$1]++ { print NR, $0 }' >cases

# md stops in the middle, while strake does below ---------------------------------------------------

boot makes 400 <<'GUEST' &
. ./cases.sh
. ./guest.sh

half_way() { # in sectors of what the action counts in: members, but for a resync of RAID 10
	if [ "$level-$kind" = 10-resync ]; then echo 8192; else echo 4096; fi
}

sets_end() {
	half_way >$md/sync_max || echo "guest: never came to have a sync_max"
}

md_resync() {
	garbage md
	attach $(first_files md)
	limit_speed 1
	mdadm --create /dev/md0 --run $(resync_options) $(case_options) $loops
	stands_still
	sets_end
	limit_speed 1000000
	echo idle >$md/sync_action
	stops_at "$(half_way)"
	size=$(blockdev --getsize64 /dev/md0)
	$PATTERN write /dev/md0 "$seed" 0 "$(written_bytes "$size")"
}

md_recovery() {
	attach $(first_files md) $(new_file md)
	set -- $loops
	shift "$n"
	mdadm --create /dev/md0 --run --assume-clean $(case_options) $(echo $loops | cut -d' ' -f "1-$n")
	$PATTERN write /dev/md0 "$seed"
	[ $kind = replace ] || removed /dev/loop1
	sets_end
	mdadm /dev/md0 --add "$1"
	[ $kind = recovery ] || mdadm /dev/md0 --replace /dev/loop1 --with "$1"
	stops_at "$(half_way)"
}

md_makes() {
	make_files md 8M
	case $kind in resync) md_resync ;; *) md_recovery ;; esac
	blockdev --getsize64 /dev/md0 >"results/$name.md.size"
	mdadm --detail /dev/md0
	detach
	attach $(middle_files md)
	bitmaps >"results/$name.md.bits"
	losetup -d $loops
}

while read -r line; do
	case_fields "$line"
	md_makes >"results/$name.md.log" 2>&1
done <cases
GUEST

# strake stops in the middle -------------------------------------------------------------------------

# facts FILE KEY...: keys of `detail --json`; a key of a member is PATH:KEY
facts() {
	python3 -c '
import json, sys
array = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    where = array
    if ":" in key:
        path, key = key.split(":")
        where = [m for m in array["members"] if m["path"].endswith("/" + path)][0]
    for part in key.split("."):
        where = where[part]
    print(where)' "$@"
}

position() {
	"$STRAKE" detail --json md0 >position.json && facts position.json sync.position_bytes
}
has_begun() { [ "$(position)" -gt 500000 ]; }
slowly() { "$STRAKE" speed md0 --min 1 --max 1M; }

# Files of this size take the fastest resync long enough to be slowed down in its middle.
our_resync() {
	make_files us 24M
	garbage us
	"$STRAKE" create md0 --run --export=fuse --homehost=oracle $(resync_options) $(case_options) \
		$(first_files us) </dev/null && slowly || return 1
	size=$(stat -Lc %s "$node")
	until_true 20 has_begun && "$PATTERN" write "$node" "$seed" 0 "$(written_bytes "$size")"
}

our_recovery() {
	make_files us 8M
	"$STRAKE" create md0 --export=fuse --homehost=oracle $(case_options) $(first_files us) \
		</dev/null && "$PATTERN" write "$node" "$seed" && slowly || return 1
	if [ $kind = replace ]; then
		"$STRAKE" md0 --add "$(new_file us)" &&
			"$STRAKE" md0 --replace "us/$name.1" --with "$(new_file us)"
	else
		"$STRAKE" md0 --fail "us/$name.1" --remove "us/$name.1" --add "$(new_file us)"
	fi </dev/null && until_true 20 has_begun
}

make_ours() {
	case $kind in resync) our_resync ;; *) our_recovery ;; esac || return 1
	stat -Lc %s "$node" >"results/$name.us.size"
	"$STRAKE" stop md0 </dev/null
}

# What is in the middle of it may be over by now, where everything else is slow.
is_half_way() {
	"$STRAKE" assemble md0 --readonly --export=fuse $(middle_files us) </dev/null || return 1
	"$STRAKE" detail --json md0 >"results/$name.us.json"
	"$STRAKE" stop md0 </dev/null
	if [ "$metadata-$kind" = 0.90-recovery ]; then
		return 0 # it has no place for the position: what is not whole is a spare
	elif [ "$kind" = resync ]; then
		[ "$(facts "results/$name.us.json" resync_offset_bytes)" != None ]
	else
		[ "$(facts "results/$name.us.json" "$name.new:recovered_bytes")" != None ]
	fi
}

make_ours_half_way() {
	for try in 1 2 3 4 5; do
		rm -f us/"$name".*
		make_ours && is_half_way && return 0
		"$STRAKE" stop md0 </dev/null
	done
	return 1
}

while read -r line; do
	case_fields "$line"
	check "$name: strake stops in the middle" make_ours_half_way
done <cases

wait
booted makes

# md goes on with strake's arrays, while strake goes on with md's below -------------------------------

boot goes_on 400 <<'GUEST' &
. ./cases.sh
. ./guest.sh

says_ok() {
	echo ok >"results/$name.$1"
}

end_bytes() {
	size=$(blockdev --getsize64 /dev/md0)
	if [ $kind = resync ]; then written_bytes "$size"; else echo "$size"; fi
}

md_goes_on() {
	attach $(middle_files us)
	dmesg --clear
	auto_readonly 1
	mdadm --assemble --run /dev/md0 $loops && says_ok assembled
	$PATTERN verify /dev/md0 "$seed" 0 "$(end_bytes)" && says_ok middle
	blockdev --getsize64 /dev/md0 >"results/$name.mdus.size"
	cat $md/resync_start $md/dev-*/recovery_start |
		grep -v none >"results/$name.positions"
	mdadm --readwrite /dev/md0
	auto_readonly 0
	settle
	dmesg >"results/$name.dmesg"
	$PATTERN verify /dev/md0 "$seed" 0 "$(end_bytes)" && says_ok content
	quiet_check && says_ok check
	mdadm --detail --test /dev/md0 >"results/$name.mdus.detail"
	echo $? >"results/$name.test"
	detach
}

while read -r line; do
	case_fields "$line"
	md_goes_on >"results/$name.mdus.log" 2>&1
done <cases
GUEST

md_bytes() {
	md_size=$(cat "results/$name.md.size")
	if [ $kind = resync ]; then written_bytes "$md_size"; else echo "$md_size"; fi
}

same_examine() { # same_examine OPTION FILE...
	mdadm "$@" >examine.md || return 1
	"$STRAKE" "$@" >examine.us || return 1
	diff -u examine.md examine.us
}

verify_cat() {
	"$STRAKE" cat --length "$(md_bytes)" "$@" </dev/null |
		"$PATTERN" verify - "$seed" 0 "$(md_bytes)"
}

# goes_on_from: what is already there is not done again. md keeps no position of a recovery in 0.90.
goes_on_from() {
	facts end.json component_bytes resync_offset_bytes "$name.0:read_bytes" >end.facts
	[ $kind = resync ] || facts end.json "$name.new:written_bytes" >>end.facts
	set -- $(cat end.facts)
	[ "$2" = None ] || { echo "the resync is still pending" && return 1; }
	if [ $kind = resync ]; then did=$3; else did=$4; fi
	echo "component $1, read or written $did"
	[ "$metadata-$kind" = 0.90-recovery ] || [ "$did" -lt $(($1 - 1048576)) ]
}

under_strake() {
	"$STRAKE" assemble md0 --export=fuse $(middle_files md) </dev/null || return 1
	"$STRAKE" wait md0 </dev/null
	"$STRAKE" detail --json md0 >end.json
	goes_on_from && "$PATTERN" verify "$node" "$seed" 0 "$(md_bytes)" &&
		"$STRAKE" check md0 --wait </dev/null
	went=$?
	"$STRAKE" detail --test md0 >end.detail
	echo $? >"results/$name.ustest"
	"$STRAKE" stop md0 </dev/null && return $went
}

# md's word about what strake finished
whole() { # whole FILE...
	mdadm --examine "$@" >whole.md || return 1
	! grep -E 'Recovery Offset|State : active' whole.md || return 1
	[ $metadata = 0.90 ] || [ "$(grep -c 'Array State : AA*[ (]' whole.md)" = $# ]
}

while read -r line; do
	case_fields "$line"
	if [ ! -s "results/$name.md.size" ] || grep -q 'never came' "results/$name.md.log"; then
		not_ok "$name: md stops in the middle"
		explain "results/$name.md.log"
		continue
	fi
	check "$name: examine's text" same_examine --examine $(middle_files md)
	[ "$bitmap" = none ] || {
		our_bitmaps $(middle_files md) >bits.us
		check "$name: the bitmaps' texts" same_bitmaps "results/$name.md.bits" bits.us
	}
	check "$name: content" verify_cat $(middle_files md)
	[ "$level-$kind" != 6-recovery ] ||
		check "$name: content without one more" verify_cat --run $(kept_files md)
	check "$name: strake goes on" under_strake
	check "$name: it is whole for mdadm" whole $(last_files md)
	[ -n "${STRAKE_TEST_KEEP:-}" ] || rm -f md/"$name".*
done <cases

wait
booted goes_on

# How md went on ------------------------------------------------------------------------------------

# Where md was before it went on is where strake stopped, in sectors. 0.90 has no place for that of a
# recovery.
md_goes_on_from_there() {
	key=resync_offset_bytes
	[ $kind = resync ] || key=$name.new:recovered_bytes
	[ "$metadata-$kind" = 0.90-recovery ] || {
		ours=$(facts "results/$name.us.json" $key)
		echo "strake stopped at byte $ours"
		[ "$ours" -gt 0 ] && [ "$(cat "results/$name.positions")" = $((ours / 512)) ]
	}
}

all_in_sync() {
	grep -qE ' State : (clean|active) $' "$1" && [ "$(grep -c 'active sync' "$1")" = "$n" ]
}

while read -r line; do
	case_fields "$line"
	for verdict in assembled middle content check; do
		check "$name: md and strake's array: $verdict" [ -s "results/$name.$verdict" ] ||
			explain "results/$name.mdus.log"
	done
	check "$name: md goes on from where strake stopped" md_goes_on_from_there ||
		explain "results/$name.positions"
	check "$name: md does not complain" no_complaint "results/$name.dmesg"
	check "$name: whole for md" all_in_sync "results/$name.mdus.detail"
	check "$name: --detail --test" cmp "results/$name.test" "results/$name.ustest"
	check "$name: sizes" cmp "results/$name.us.size" "results/$name.mdus.size"
done <cases
finish
