# SPDX-License-Identifier: MIT
# Arrays with redundancy that md and strake must agree on, one per line:
# NAME LEVEL METADATA MEMBERS CHUNK-IN-KiB(0: none said) LAYOUT(-: none said) BITMAP

metadatas() {
	set -- 1.2 1.0 1.1 0.90
	eval echo "\$$((1 + $case_number % 4))"
}

# case_redundant LEVEL MEMBERS CHUNK LAYOUT
case_redundant() {
	metadata=$(metadatas)
	bitmap=none
	[ $((case_number % 3)) -ne 0 ] || bitmap=internal
	case_number=$((case_number + 1))
	echo "raid$1-$metadata-$2-c$3-${4#-}-$bitmap $1 $metadata $2 $3 $4 $bitmap"
}

cases_redundant() {
	case_number=0
	for n in 2 3 2 4 3; do case_redundant 1 $n 0 -; done
	for n in 3 5; do case_redundant 4 $n 16 -; done
	for layout in la ra ls rs parity-first parity-last; do
		case_redundant 5 3 64 $layout
		case_redundant 5 5 4 $layout
	done
	for layout in la ra ls rs parity-first parity-last ddf-zero-restart ddf-N-restart \
		ddf-N-continue left-asymmetric-6 right-asymmetric-6 left-symmetric-6 right-symmetric-6 \
		parity-first-6; do
		case_redundant 6 4 16 $layout
		[ $((case_number % 2)) -ne 0 ] || case_redundant 6 6 8 $layout
	done
	for layout in n2 n3 f2 f3 o2 o3; do
		case_redundant 10 3 16 $layout
		case_redundant 10 4 64 $layout
		case_redundant 10 5 4 $layout
	done
}

# case_fields LINE: seed (the line's number) and all fields, and which members are left out.
case_fields() {
	set -- $1
	seed=$1 name=$2 level=$3 metadata=$4 n=$5 chunk=$6 layout=$7 bitmap=$8 kind=${9:-}
	drop=$((seed % n))
	drop2=$drop
	[ "$level" != 6 ] || drop2=$(((seed + 1) % n))
}

# options of create that mdadm and strake both take
case_options() {
	echo "--level=$level --metadata=$metadata --raid-devices=$n --bitmap=$bitmap"
	[ "$chunk" = 0 ] || echo "--chunk=$chunk"
	[ "$layout" = - ] || echo "--layout=$layout"
}

# case_files DIR [kept]: all members, or without those that are left out
case_files() {
	i=0
	while [ $i -lt "$n" ]; do
		[ "${2:-}" = kept ] && { [ $i = $drop ] || [ $i = $drop2 ]; } || echo "$1/$name.$i"
		i=$((i + 1))
	done
}

# case_sets survive|fail: sets of one or two members (I or I,J), one per line, that the level can miss
# or cannot. A chunk of RAID 10 is lost with the last of its copies: near copies lie on members that
# follow each other from k times its number on, far and offset ones from its number on.
case_sets() {
	awk -v want="$1" -v level="$level" -v n="$n" -v layout="$layout" '
		function loses(chunk, a, b,   copy, at) {
			for (copy = 0; copy < copies; copy++) {
				at = ((near ? chunk * copies : chunk) + copy) % n
				if (at != a && at != b)
					return 0
			}
			return 1
		}
		function survives(a, b,   count, chunk) {
			count = a == b ? 1 : 2
			if (level == 1)
				return count < n
			if (level != 10)
				return count <= (level == 6 ? 2 : 1)
			for (chunk = 0; chunk < n; chunk++)
				if (loses(chunk, a, b))
					return 0
			return 1
		}
		BEGIN {
			near = layout ~ /^n/
			copies = substr(layout, 2) + 0
			for (a = 0; a < n; a++)
				for (b = a; b < n; b++)
					if (survives(a, b) == (want == "survive"))
						print a (a == b ? "" : "," b)
		}'
}

# case_without DIR SET: all members but those
case_without() {
	case_files "$1" | grep -vE "\.($(echo "$2" | tr , '|'))\$"
}

case_members() {
	truncate -s 5M $(case_files "$1")
}

# Arrays that one side leaves in the middle of something and the other takes over: the same lines,
# with what it is in the middle of behind them: recovery, resync or replace.
# handover LEVEL MEMBERS CHUNK LAYOUT METADATA BITMAP KIND...
handover() {
	front="$1 $5 $2 $3 $4 $6"
	name="raid$1-$5-$2-c$3-${4#-}-$6"
	shift 6
	for kind; do echo "$name-$kind $front $kind"; done
}

# Each version with each level.
cases_handover() {
	handover 1 2 0 - 1.2 none recovery resync replace
	handover 1 3 0 - 1.0 internal recovery resync
	handover 1 2 0 - 1.1 none recovery resync
	handover 1 2 0 - 0.90 none recovery resync
	handover 10 4 64 n2 1.2 none recovery resync replace
	handover 10 3 16 f2 1.0 none recovery resync
	handover 10 5 4 o2 1.1 internal recovery resync
	handover 10 3 16 n2 0.90 none recovery resync
	handover 4 3 16 - 1.2 none recovery resync replace
	handover 4 4 8 - 1.0 internal recovery resync
	handover 4 3 64 - 1.1 none recovery resync
	handover 4 3 16 - 0.90 none recovery resync
	handover 5 3 64 ls 1.2 none recovery resync replace
	handover 5 5 4 la 1.0 none recovery resync
	handover 5 4 16 rs 1.1 internal recovery resync
	handover 5 3 16 parity-first 0.90 none recovery resync
	handover 6 4 16 ls 1.2 none recovery resync replace
	handover 6 5 8 ddf-N-continue 1.0 internal recovery resync
	handover 6 5 64 left-symmetric-6 1.1 none recovery resync
	handover 6 4 16 ra 0.90 none recovery resync
}

# Every layout, with two versions of metadata, in the middle of everything.
cases_handover_long() {
	cases_handover
	for metadata in 1.2 0.90; do
		kinds="recovery resync"
		[ $metadata = 0.90 ] || kinds="recovery resync replace"
		for layout in n2 n3 f2 f3 o2 o3; do
			for n in 3 4 5; do handover 10 $n 16 $layout $metadata none $kinds; done
		done
		for layout in la ra ls rs parity-first parity-last; do
			handover 5 4 16 $layout $metadata none $kinds
			handover 6 5 16 $layout $metadata none $kinds
		done
		for layout in ddf-zero-restart ddf-N-restart ddf-N-continue left-asymmetric-6 \
			right-asymmetric-6 left-symmetric-6 right-symmetric-6 parity-first-6; do
			handover 6 5 16 $layout $metadata none $kinds
		done
	done
}

# Arrays that are written when everything stops: whole, degraded or rebuilding (dirty parity without
# all members is refused by md).
cases_crash() {
	handover 1 2 0 - 1.2 none whole degraded rebuilding
	handover 1 3 0 - 1.0 internal whole degraded rebuilding
	handover 10 4 16 n2 1.2 internal whole degraded rebuilding
	handover 10 3 64 f2 1.1 none whole
	handover 10 5 4 o2 0.90 none whole
	handover 4 3 16 - 1.2 internal whole
	handover 5 3 16 ls 1.2 internal whole
	handover 5 4 64 la 0.90 none whole
	handover 6 4 16 ls 1.1 internal whole
	handover 6 5 4 ddf-N-continue 1.2 none whole
}

cases_crash_long() {
	cases_crash
	for layout in n2 n3 f2 f3 o2 o3; do handover 10 5 16 $layout 1.2 internal whole degraded; done
	for layout in la ra ls rs parity-first parity-last; do
		handover 5 4 16 $layout 1.2 none whole
		handover 6 5 16 $layout 1.2 internal whole
	done
	for layout in ddf-zero-restart ddf-N-restart ddf-N-continue left-asymmetric-6 \
		right-asymmetric-6 left-symmetric-6 right-symmetric-6 parity-first-6; do
		handover 6 5 16 $layout 1.2 none whole
	done
}
