#!/bin/sh
# SPDX-License-Identifier: MIT
# Against the real md, both ways, in two boots of user-mode-linux: arrays that strake makes and fills
# are assembled, verified and described by md; arrays that md makes and fills are read by strake.
# The texts of both sides and the bytes of the superblocks are compared.
. "${0%/*}/../lib.sh"
. "$TESTS/uml/boot.sh"
. "$TESTS/uml/cases.sh"

requires_uml
requires_fuse
requires nbdcopy nbdinfo mkfs.ext4 fsck.ext4 debugfs

mkdir md us results
cp "$TESTS/uml/cases.sh" .
{ cases_linear; cases_raid0; } | awk '!seen[$1]++' >cases.md
{ cat cases.md; cases_ours_only; } | awk '{ print NR, $0 }' >cases.us
awk '{ print NR, $0 }' cases.md >cases.tmp && mv cases.tmp cases.md

mkdir fsmd fsus tree
head -c 300000 /dev/urandom >tree/random
printf 'hello\n' >tree/hello
mkdir -p "tree/a folder"
seq 1 20000 >"tree/a folder/numbers"
(cd tree && find . -type f -exec sha256sum {} +) >tree.sums
truncate -s 24M fsmd/0 fsmd/1 fsus/0 fsus/1

# md makes and fills its arrays, while strake does below -------------------------------------------

boot makes 150 <<'GUEST' &
. ./cases.sh

md_makes() {
	case_members md
	attach $(case_files md)
	mdadm --create /dev/md0 --run $(case_options) $loops
	blockdev --getsize64 /dev/md0 >"results/$name.md.size"
	$PATTERN write /dev/md0 "$seed"
	mdadm --detail /dev/md0 >"results/$name.md.detail"
	detach
}

while read -r seed line; do
	case_fields "$line"
	md_makes >"results/$name.md.log" 2>&1
done <cases.md

md_makes_fs() {
	attach fsmd/0 fsmd/1
	mdadm --create /dev/md0 --run --level=0 --raid-devices=2 --chunk=64 $loops &&
		mkfs.ext4 -q -d tree /dev/md0 && echo ok >results/fsmd.verdict
	detach
}
md_makes_fs >results/fsmd.log 2>&1
GUEST

# strake makes and fills its arrays ---------------------------------------------------------------

# fill_by_file / fill_by_nbd: the array's size is left in results/NAME.us.size
fill_by_file() {
	"$STRAKE" assemble md0 --export=fuse $(case_files us) </dev/null || return 1
	stat -Lc %s "$STRAKE_RUNTIME_DIR/md0" >"results/$name.us.size"
	"$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" "$seed"
}

fill_by_nbd() {
	"$STRAKE" assemble md0 "--export=nbd:$T/nbd" $(case_files us) </dev/null || return 1
	uri="nbd+unix:///?socket=$T/nbd"
	nbdinfo --size "$uri" >"results/$name.us.size"
	"$PATTERN" write - "$seed" 0 "$(cat "results/$name.us.size")" >whole
	nbdcopy --flush whole "$uri"
}

make_ours() {
	case_members us
	"$STRAKE" create md0 --export=none --homehost=oracle $(case_options) $(case_files us) \
		</dev/null || return 1
	if [ $((seed % 3)) = 0 ]; then fill_by_nbd; else fill_by_file; fi || return 1
	"$STRAKE" detail md0 >"results/$name.us.detail" || return 1
	"$STRAKE" stop md0 </dev/null
}

while read -r seed line; do
	case_fields "$line"
	check "$name: strake creates and fills it" make_ours
done <cases.us

make_fs() {
	"$STRAKE" create md0 --export=none --level=0 --raid-devices=2 --chunk=64 fsus/0 fsus/1 &&
		"$STRAKE" assemble md0 --export=fuse fsus/0 fsus/1 &&
		mkfs.ext4 -q -d tree "$STRAKE_RUNTIME_DIR/md0" &&
		"$STRAKE" stop md0
}
check "mkfs.ext4 on an array of strake" make_fs

wait
booted makes

# md looks at strake's arrays, while strake looks at md's below ------------------------------------

boot reads 150 <<'GUEST' &
. ./cases.sh

md_reads() {
	attach $(case_files us)
	dmesg --clear
	if mdadm --assemble /dev/md0 $loops && $PATTERN verify /dev/md0 "$seed"; then
		echo ok >"results/$name.verdict"
	fi
	dmesg >"results/$name.dmesg"
	blockdev --getsize64 /dev/md0 >"results/$name.mdus.size"
	mdadm --detail /dev/md0 >"results/$name.mdus.detail"
	detach
}

while read -r seed line; do
	case_fields "$line"
	md_reads >"results/$name.mdus.log" 2>&1
done <cases.us

md_reads_fs() {
	attach fsus/0 fsus/1
	mkdir -p /run/mnt
	mdadm --assemble /dev/md0 $loops && fsck.ext4 -fn /dev/md0 &&
		mount -t ext4 -o ro /dev/md0 /run/mnt &&
		(cd /run/mnt && sha256sum --quiet -c "$T/tree.sums") && echo ok >results/fsus.verdict
	umount /run/mnt
	detach
}
md_reads_fs >results/fsus.log 2>&1
GUEST

# Arrays of md under strake -----------------------------------------------------------------------

# What differs for good reason: the node's name, whose host it is, device numbers and names.
plain_detail() {
	sed -E '1d; s/ +\(local to host .*\)//' "$1" | awk '
		/Number +Major/ { table = 1 }
		table && $1 ~ /^[0-9]+$/ { print "row", $1, $4, $5, $6; next }
		{ print }'
}

same_detail() {
	[ -s "$1" ] && [ -s "$2" ] || return 1
	plain_detail "$1" >detail.md
	plain_detail "$2" >detail.us
	diff -u detail.md detail.us
}

same_examine() {
	mdadm --examine $(case_files md) >examine.md || return 1
	"$STRAKE" examine $(case_files md) >examine.us || return 1
	diff -u examine.md examine.us
}

same_examine_forms() {
	for form in --brief --export; do
		for file in $(case_files md); do
			mdadm --examine $form "$file" >examine.md || return 1
			"$STRAKE" examine $form "$file" >examine.us || return 1
			diff -u examine.md examine.us || return 1
		done
	done
}

reversed_files() {
	case_files md | tac
}

content_by_cat() {
	"$STRAKE" cat $(reversed_files) | "$PATTERN" verify - "$seed" 0 "$(cat "results/$name.md.size")"
}

content_by_file() {
	"$STRAKE" assemble md0 --readonly --export=fuse $(reversed_files) </dev/null || return 1
	"$PATTERN" verify "$STRAKE_RUNTIME_DIR/md0" "$seed" &&
		[ "$(stat -Lc %s "$STRAKE_RUNTIME_DIR/md0")" = "$(cat "results/$name.md.size")" ] &&
		"$STRAKE" detail md0 >"results/$name.usmd.ro" &&
		grep -q ' State : readonly $' "results/$name.usmd.ro"
	content=$?
	sed 's/ State : readonly $/ State : clean /' "results/$name.usmd.ro" >"results/$name.usmd.detail"
	"$STRAKE" stop md0 </dev/null && return $content
}

content_by_nbd() {
	"$STRAKE" assemble md0 "--export=nbd:$T/nbd" $(reversed_files) </dev/null || return 1
	nbdcopy "nbd+unix:///?socket=$T/nbd" - |
		"$PATTERN" verify - "$seed" 0 "$(cat "results/$name.md.size")" &&
		"$STRAKE" detail md0 >"results/$name.usmd.detail"
	content=$?
	"$STRAKE" stop md0 </dev/null && return $content
}

# The fields of two superblocks, without what is random, a time, or follows from those.
plain_examine() {
	mdadm --examine "$1" | sed -E '1d; s/ +\(local to host .*\)//; /UUID :/d; /Time :/d; /Checksum :/d' |
		awk '/Number +Major/ { table = 1 } table { $3 = $4 = ""; sub(/sync .*/, "sync") } { print }'
}

# super_bytes FILE: its superblock, without set and device UUID, the seconds of ctime and utime, and
# the checksum. md writes 512 bytes of it where there are up to 128 devices.
super_bytes() {
	case $metadata in
	1.0) at=$(((($(stat -c %s "$1") / 512 - 16) & ~7) * 512)) ;;
	1.1) at=0 ;;
	1.2) at=4096 ;;
	esac
	for range in 0+16 32+32 69+3 72+96 184+8 197+3 200+16 220+292; do
		dd if="$1" bs=4096 iflag=skip_bytes,count_bytes skip=$((at + ${range%+*})) \
			count="${range#*+}" status=none
	done | od -Ax -tx1 -v
}

same_superblocks() {
	i=0
	while [ $i -lt "$n" ]; do
		plain_examine "md/$name.$i" >super.md
		[ -s super.md ] || return 1
		plain_examine "us/$name.$i" >super.us
		diff -u super.md super.us || return 1
		if [ "$metadata" != 0.90 ]; then
			super_bytes "md/$name.$i" >super.md
			super_bytes "us/$name.$i" >super.us
			diff -u super.md super.us || return 1
		fi
		i=$((i + 1))
	done
}

while read -r seed line; do
	case_fields "$line"
	if [ ! -s "results/$name.md.size" ]; then
		not_ok "$name: md makes it"
		explain "results/$name.md.log"
		continue
	fi
	snap $(case_files md)
	check "$name: examine's text" same_examine
	check "$name: content by cat" content_by_cat
	case $((seed % 4)) in
	0) check "$name: examine --brief and --export" same_examine_forms ;;
	1) check "$name: content by the FUSE file" content_by_file ;;
	2) check "$name: content by NBD" content_by_nbd ;;
	3) ;;
	esac
	[ ! -f "results/$name.usmd.detail" ] || check "$name: detail of md's array" \
		same_detail "results/$name.md.detail" "results/$name.usmd.detail"
	same "$name: reading"
	check "$name: superblocks as mdadm makes them" same_superblocks
done <cases.md

fs_of_md() {
	"$STRAKE" assemble md0 --export=fuse fsmd/0 fsmd/1 </dev/null || return 1
	mkdir -p out
	fsck.ext4 -fn "$STRAKE_RUNTIME_DIR/md0" && debugfs -R "rdump / out" "$STRAKE_RUNTIME_DIR/md0" &&
		(cd out && sha256sum --quiet -c "$T/tree.sums")
	clean=$?
	"$STRAKE" stop md0 </dev/null && return $clean
}

check "md makes a file system" [ -s results/fsmd.verdict ] || explain results/fsmd.log
check "the file system that md made is clean and whole" fs_of_md

wait
booted reads

# What md said of our arrays ----------------------------------------------------------------------

no_complaint() {
	grep -q md "$1" && ! grep -iE 'md|raid|linear' "$1" |
		grep -iE 'kick|invalid|fail|error|unknown|cannot|warn|bad|please|refus|mismatch'
}

while read -r seed line; do
	case_fields "$line"
	check "$name: md finds strake's content" [ -s "results/$name.verdict" ] ||
		explain "results/$name.mdus.log"
	check "$name: md and strake agree on the size" \
		cmp "results/$name.us.size" "results/$name.mdus.size"
	check "$name: md does not complain" no_complaint "results/$name.dmesg"
	check "$name: detail of strake's array" \
		same_detail "results/$name.mdus.detail" "results/$name.us.detail"
done <cases.us

check "the file system on strake's array is clean and whole for md" [ -s results/fsus.verdict ] ||
	explain results/fsus.log
finish
