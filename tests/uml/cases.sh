# SPDX-License-Identifier: MIT
# The matrix of arrays that md and strake must agree on, one per line:
# NAME LEVEL METADATA MEMBERS SIZES-IN-KiB(comma) CHUNK-IN-KiB(0: none said) LAYOUT(-: none said)

# sizes MEMBERS equal|unequal CHUNK: small members, yet more than one chunk in each; unequal ones
# in no order, no whole chunks, and apart by more than a chunk so that there are several zones.
sizes() {
	base=4096
	step=300
	[ "$3" -lt 256 ] || { base=8192 step=2100; }
	list=
	i=0
	for place in 1 0 3 4 2; do
		[ $i -lt "$1" ] || break
		size=$base
		[ "$2" = equal ] || size=$((base + place * step + i * 4))
		list=$list${list:+,}$size
		i=$((i + 1))
	done
	echo "$list"
}

cases_linear() {
	rounding=0
	for metadata in 0.90 1.0 1.1 1.2; do
		for n in 2 3 4 5; do
			for kind in equal unequal; do
				echo "linear-$metadata-$n-$kind-r$rounding linear $metadata $n" \
					"$(sizes $n $kind 0) $rounding -"
				case $rounding in 0) rounding=64 ;; 64) rounding=4 ;; *) rounding=0 ;; esac
			done
		done
	done
}

# case_raid0 METADATA MEMBERS KIND CHUNK LAYOUT
case_raid0() {
	echo "raid0-$1-$2-$3-c$4${5#-} raid0 $1 $2 $(sizes "$2" "$3" "$4") $4 $5"
}

cases_raid0() {
	chunks="4 8 16 32 64 128 256 512 1024"
	set -- $chunks
	for metadata in 1.0 1.1 1.2; do
		for n in 2 3 4 5; do
			for layout in - original alternate; do
				kind=unequal
				[ $layout != - ] || kind=equal
				case_raid0 $metadata $n $kind "$1" $layout
				shift
				[ $# -gt 0 ] || set -- $chunks
			done
		done
	done
	for chunk in $chunks; do
		case_raid0 1.2 2 equal "$chunk" -
		case_raid0 1.2 3 unequal "$chunk" original
		case_raid0 1.2 5 unequal "$chunk" alternate
	done
	# md allows any multiple of the block size.
	case_raid0 1.2 2 equal 12 -
	case_raid0 1.2 3 unequal 12 original
	case_raid0 1.0 4 unequal 6 alternate
}

# What strake can make and mdadm 4.2 can not.
cases_ours_only() {
	for n in 2 3 4 5; do
		case_raid0 0.90 $n equal $((4 << n)) -
	done
}

# case_fields LINE: name, level, … and $files relative to the folder "$dir".
case_fields() {
	set -- $1
	name=$1 level=$2 metadata=$3 n=$4 sizes=$5 chunk=$6 layout=$7
}

# options of create that mdadm and strake both take
case_options() {
	echo "--level=$level --metadata=$metadata --raid-devices=$n"
	[ "$chunk" = 0 ] || echo "--chunk=$chunk"
	[ "$layout" = - ] || echo "--layout=$layout"
}

# case_files DIR
case_files() {
	i=0
	while [ $i -lt "$n" ]; do
		echo "$1/$name.$i"
		i=$((i + 1))
	done
}

# case_members DIR: make them
case_members() {
	i=0
	for size in $(echo "$sizes" | tr , ' '); do
		truncate -s "${size}K" "$1/$name.$i"
		i=$((i + 1))
	done
}
