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
	seed=$1 name=$2 level=$3 metadata=$4 n=$5 chunk=$6 layout=$7 bitmap=$8
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

case_members() {
	truncate -s 5M $(case_files "$1")
}
