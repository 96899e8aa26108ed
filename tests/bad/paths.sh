#!/bin/sh
# SPDX-License-Identifier: MIT
# Paths that trip programs up: spaces, dashes, no ASCII, quotes, newlines, 4,000 characters. They work.
. "${0%/*}/../lib.sh"
requires_fuse

# works WHAT MEMBER MEMBER [SHOWN]: the whole way with these two paths; SHOWN: the first as detail
# shows it.
works() {
	what=$1
	truncate -s 8M "./$2" "./$3" 2>/dev/null || truncate -s 8M "$2" "$3"
	runs "$what: create" create md0 --level 0 --raid-devices 2 --export=none -- "$2" "$3"
	runs "$what: examine" examine -- "$2"
	runs "$what: assemble" assemble md0 --export=fuse -- "$2" "$3"
	check "$what: write" "$PATTERN" write "$STRAKE_RUNTIME_DIR/md0" 3
	runs "$what: detail" detail md0
	check "$what: detail names the member" grep -qF -- "${4:-$(printf %s "$2" | tail -c 20)}" "$T/out"
	runs "$what: detail --json" detail --json md0
	check "$what: JSON is well-formed" python3 -c 'import json,sys; json.load(sys.stdin)' <"$T/out"
	runs "$what: status" status
	runs "$what: stop" stop md0
	"$STRAKE" cat -- "$2" "$3" | "$PATTERN" verify - 3 0 "$(array_bytes "$2")"
	check "$what: cat" [ $? = 0 ]
}

# The content of the two equal members of 8 MiB: mdadm's data offset for 512 KiB chunks is 2 MiB.
array_bytes() {
	echo $((2 * (8 - 2) * 1048576))
}

requires python3
works "spaces" "a member" " b "
works "leading dashes" "-x" "--level=5"
works "no ASCII" "größe-日本" "δίσκος"
# Bytes that are no UTF-8 are shown in octal: JSON and terminals take nothing else.
works "invalid UTF-8" "$(printf 'a\377b')" "$(printf 'b\300\200')" 'a\377b'
works "quotes and backslashes" "a\"'b" 'c\d$(e)%s%n'
works "a newline" "a
b" "c"
works "looks like a word of the grammar" "missing.img" "create"

part=$(printf '%0199d' 0)
deep=$T
while [ $((${#deep} + 200)) -lt 3990 ]; do deep=$deep/$part; done
mkdir -p "$deep"
deep=$deep/$(printf '%0*d' $((3998 - ${#deep})) 0)
check "the path has 4,000 characters" [ ${#deep}1 -ge 39991 ]
works "4,000 characters" "${deep}a" "${deep}b"

truncate -s 8M d0
snap d0
refused "a path too long for the kernel" "1 2" 'too long' -- create md0 --level 0 --raid-devices 2 \
	--export=none d0 "$(printf '%05000d' 0)"
refused "a file name too long for the file system" "1 2" 'too long' -- \
	create md0 --level 0 --raid-devices 2 --export=none d0 "$(printf '%0300d' 0)"
refused "an empty path" "1 2" -- create md0 --level 0 --raid-devices 2 --export=none d0 ""
same "paths too long"
refused "an array name too long" "1 2" 'long|name' -- \
	assemble "$(printf '%0300d' 0)" --export=fuse d0
finish
