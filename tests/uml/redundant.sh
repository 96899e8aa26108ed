#!/bin/sh
# SPDX-License-Identifier: MIT
# Levels with redundancy against the real md, both ways, in two boots of user-mode-linux: each side
# makes and fills arrays, whole and degraded; the other reads them, whole and without as many members
# as may be missing, and checks that all copies and parity agree.
. "${0%/*}/../lib.sh"
. "$TESTS/uml/boot.sh"
. "$TESTS/uml/compare.sh"

requires_uml
requires_fuse
requires nbdcopy
node=$STRAKE_RUNTIME_DIR/md0

mkdir md mddeg us usdeg results
cp "$TESTS/uml/redundant_cases.sh" cases.sh
. ./cases.sh
cases_redundant | awk '!seen[$1]++ { print NR, $0 }' >cases

cp "$TESTS/uml/guest.sh" guest.sh
echo "UML_LONG=${UML_LONG:-}" >>cases.sh

# md makes and fills its arrays, while strake does below -------------------------------------------

boot makes 400 <<'GUEST' &
. ./cases.sh
. ./guest.sh

md_makes() {
	case_members md
	attach $(case_files md)
	mdadm --create /dev/md0 --run --assume-clean $(case_options) $loops || return
	blockdev --getsize64 /dev/md0 >"results/$name.md.size"
	$PATTERN write /dev/md0 "$seed"
	mdadm --detail /dev/md0 >"results/$name.md.detail"
	detach
	cp $(case_files md) mddeg
	attach $(case_files mddeg kept)
	mdadm --assemble --run /dev/md0 $loops && $PATTERN write /dev/md0 $((seed + 1000))
	mdadm --stop /dev/md0
	[ "$bitmap" = none ] || bitmaps >"results/$name.md.bits"
	losetup -d $loops
}

while read -r line; do
	case_fields "$line"
	md_makes >"results/$name.md.log" 2>&1
done <cases
GUEST

# strake makes and fills its arrays ----------------------------------------------------------------

make_ours() {
	case_members us
	"$STRAKE" create md0 --export=fuse --homehost=oracle $(case_options) $(case_files us) </dev/null &&
		stat -Lc %s "$node" >"results/$name.us.size" &&
		"$PATTERN" write "$node" "$seed" || return 1
	"$STRAKE" detail md0 >"results/$name.us.detail"
	"$STRAKE" stop md0 </dev/null || return 1
	cp $(case_files us) usdeg
	"$STRAKE" assemble md0 --run --export=fuse $(case_files usdeg kept) </dev/null &&
		"$PATTERN" write "$node" $((seed + 1000)) || return 1
	"$STRAKE" stop md0 </dev/null
}

while read -r line; do
	case_fields "$line"
	check "$name: strake makes and fills it, whole and degraded" make_ours
done <cases

wait
booted makes

# md looks at strake's arrays, while strake looks at md's below ------------------------------------

boot reads 400 <<'GUEST' &
. ./cases.sh
. ./guest.sh

# md_verifies DIR SEED OPTION...: what stands in $loops
md_verifies() {
	verdict=$1
	with_seed=$2
	shift 2
	mdadm --assemble /dev/md0 "$@" $loops && $PATTERN verify /dev/md0 "$with_seed" || return
	[ -n "$*" ] || quiet_check || { echo "mismatches" && return; }
	echo ok >"results/$name.$verdict"
}

md_reads() {
	sets=$drop,$drop2
	[ -z "${UML_LONG:-}" ] || sets=$(case_sets survive)
	for set in $sets; do
		rm -f "results/$name.without"
		attach $(case_without us "$set")
		md_verifies without "$seed" --run --readonly
		detach
		[ -s "results/$name.without" ] || { echo "without $set" && break; }
	done
	attach $(case_files usdeg kept)
	md_verifies degraded $((seed + 1000)) --run
	detach
	attach $(case_files us)
	dmesg --clear
	md_verifies whole "$seed"
	dmesg >"results/$name.dmesg"
	blockdev --getsize64 /dev/md0 >"results/$name.mdus.size"
	mdadm --detail /dev/md0 >"results/$name.mdus.detail"
	detach
}

while read -r line; do
	case_fields "$line"
	md_reads >"results/$name.mdus.log" 2>&1
done <cases
GUEST

# Arrays of md under strake ------------------------------------------------------------------------

# What differs for good reason: the node's name, whose host it is, device numbers and names, times.
plain_detail() {
	sed -E '1d; s/ +\(local to host .*\)//; /Update Time/d; /Events :/d' "$1" | awk '
		/Number +Major/ { table = 1 }
		table && $1 ~ /^[0-9]+$/ { print "row", $1, $4, $5, $6, $7 ~ /^set/ ? $7 : ""; next }
		{ print }'
}

same_detail() {
	[ -s "$1" ] && [ -s "$2" ] || return 1
	plain_detail "$1" >detail.md
	plain_detail "$2" | sed 's/ State : active / State : clean /' >detail.us
	sed -i 's/ State : active / State : clean /' detail.md
	diff -u detail.md detail.us
}

same_examine() {
	mdadm --examine $(case_files md) >examine.md || return 1
	"$STRAKE" examine $(case_files md) >examine.us || return 1
	diff -u examine.md examine.us
}

verify_cat() { # verify_cat SEED ARGUMENT...
	cat_seed=$1
	shift
	"$STRAKE" cat "$@" </dev/null | "$PATTERN" verify - "$cat_seed" 0 "$(cat "results/$name.md.size")"
}

every_set() {
	for set in $(case_sets survive); do
		verify_cat "$seed" --run $(case_without md "$set") || { echo "without $set" && return 1; }
	done
}

by_nbd() { # degraded, where it can be
	"$STRAKE" assemble md0 --readonly --run "--export=nbd:$T/nbd" $(case_files md kept) </dev/null ||
		return 1
	nbdcopy "nbd+unix:///?socket=$T/nbd" - |
		"$PATTERN" verify - "$seed" 0 "$(cat "results/$name.md.size")"
	content=$?
	"$STRAKE" stop md0 </dev/null && return $content
}

# Not a byte, and an error.
no_set() {
	for set in $(case_sets fail); do
		left=$(case_without md "$set")
		[ -n "$left" ] || continue
		if "$STRAKE" cat --run $left >cat.out 2>cat.err </dev/null || [ -s cat.out ]; then
			echo "without $set" && return 1
		fi
	done
}

# The size is md's; check finds nothing; detail says what mdadm says.
under_strake() {
	"$STRAKE" assemble md0 --export=fuse $(case_files md) </dev/null || return 1
	[ "$(stat -Lc %s "$node")" = "$(cat "results/$name.md.size")" ] &&
		"$STRAKE" detail md0 >"results/$name.usmd.detail" &&
		"$STRAKE" check md0 --wait >"$T/out" 2>&1 </dev/null
	content=$?
	"$STRAKE" stop md0 </dev/null && return $content
}

while read -r line; do
	case_fields "$line"
	if [ ! -s "results/$name.md.size" ]; then
		not_ok "$name: md makes it"
		explain "results/$name.md.log"
		continue
	fi
	check "$name: examine's text" same_examine
	check "$name: content" verify_cat "$seed" $(case_files md)
	check "$name: content without each set of members that may be missing" every_set
	[ $((seed % 6)) != 0 ] || check "$name: content by NBD" by_nbd
	check "$name: nothing where too many are missing" no_set
	[ "$bitmap" = none ] || {
		our_bitmaps $(case_files mddeg kept) >bits.us
		check "$name: the bitmaps' texts" same_bitmaps "results/$name.md.bits" bits.us
	}
	check "$name: content that md wrote degraded" verify_cat $((seed + 1000)) \
		--run $(case_files mddeg kept)
	check "$name: no mismatch in what md wrote" under_strake
	check "$name: detail of md's array" same_detail "results/$name.md.detail" \
		"results/$name.usmd.detail"
done <cases

wait
booted reads

# What md said of our arrays -----------------------------------------------------------------------

while read -r line; do
	case_fields "$line"
	for kind in whole without degraded; do
		check "$name: md agrees with what strake wrote, $kind" [ -s "results/$name.$kind" ] ||
			explain "results/$name.mdus.log"
	done
	check "$name: md and strake agree on the size" \
		cmp "results/$name.us.size" "results/$name.mdus.size"
	check "$name: md does not complain" no_complaint "results/$name.dmesg"
	check "$name: detail of strake's array" \
		same_detail "results/$name.mdus.detail" "results/$name.us.detail"
done <cases
finish
