#!/bin/sh
# SPDX-License-Identifier: MIT
# Every subset of the members of arrays with redundancy: whether it starts, what detail --test says,
# and what cat gives, by a rule of this script that knows nothing of the program's.
. "${0%/*}/../lib.sh"
requires_fuse

# copies LAYOUT N: for each chunk of a period the slots that hold it, as bits, one number a line.
copies() {
	c=0
	while [ $c -lt "$2" ]; do
		case $1 in
		n2) echo $((1 << (2 * c % $2) | 1 << ((2 * c + 1) % $2))) ;;
		n3) echo $((1 << (3 * c % $2) | 1 << ((3 * c + 1) % $2) | 1 << ((3 * c + 2) % $2))) ;;
		f2 | o2) echo $((1 << (c % $2) | 1 << ((c + 1) % $2))) ;;
		esac
		c=$((c + 1))
	done
}

# readable LEVEL LAYOUT N BITS: can the array be read with the slots in BITS?
readable() {
	there=0
	i=0
	while [ $i -lt "$3" ]; do
		there=$((there + ($4 >> i & 1)))
		i=$((i + 1))
	done
	case $1 in
	1) [ $there -ge 1 ] ;;
	4 | 5) [ $there -ge $(($3 - 1)) ] ;;
	6) [ $there -ge $(($3 - 2)) ] ;;
	10)
		for chunk in $(copies "$2" "$3"); do
			[ $((chunk & $4)) -ne 0 ] || return 1
		done
		;;
	esac
}

# files BITS N
files() {
	i=0
	while [ $i -lt "$2" ]; do
		[ $(($1 >> i & 1)) -eq 0 ] || echo d$i
		i=$((i + 1))
	done
}

# what the program said of this subset, as "CODE-WITHOUT-RUN CODE-WITH-RUN TEST CONTENT"
try_subset() {
	run assemble md0 --readonly --export=fuse $1
	plain=$rc
	[ $rc -ne 0 ] || run stop md0
	run assemble md0 --readonly --export=fuse --run $1
	insisted=$rc
	health=-
	if [ $rc -eq 0 ]; then
		run detail --test md0
		health=$rc
		run stop md0
	fi
	content=bad
	timeout 30 "$STRAKE" cat --run $1 2>"$T/err" | cmp -s - content && content=good
	echo "$plain $insisted $health $content"
}

# subsets LEVEL LAYOUT N
subsets() {
	mkd "$3" 6M
	layout=
	[ "$2" = - ] || layout=--layout=$2
	runs "create $1 $2 $3" create md0 --level "$1" $layout --raid-devices "$3" --run \
		--export=fuse $(files $(((1 << $3) - 1)) "$3") || return
	"$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" 7 >/dev/null || not_ok "write"
	cp "$STRAKE_RUNTIME_DIR/md0" content
	runs "stop $1 $2 $3" stop md0
	snap d*
	wrong=
	bits=1
	while [ $bits -lt $((1 << $3)) ]; do
		expected="1 1 - bad"
		! readable "$1" "$2" "$3" $bits || expected="1 0 1 good"
		[ $bits -ne $(((1 << $3) - 1)) ] || expected="0 0 0 good"
		got=$(try_subset "$(files $bits "$3")")
		[ "$got" = "$expected" ] || wrong="$wrong; $(files $bits "$3" | tr '\n' ' '): got $got, expected $expected"
		bits=$((bits + 1))
	done
	check "level $1 layout $2 of $3: every subset of members" [ -z "$wrong" ] || echo "#  $wrong"
	same "level $1 layout $2 of $3"
	rm -f d* content
}

subsets 1 - 3
subsets 4 - 3
subsets 5 ls 4
subsets 5 ra 3
subsets 6 - 5
subsets 10 n2 4
subsets 10 n2 3
subsets 10 n3 5
subsets 10 f2 4
subsets 10 o2 4
check "nothing runs" nothing_left md0
finish
