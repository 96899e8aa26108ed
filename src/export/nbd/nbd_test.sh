#!/bin/sh
# SPDX-License-Identifier: MIT
# NBD: the plugin by itself and as strake's export. tests/life/nbdkit.sh looks at the same from the
# outside; here are the things that only this folder knows of.
# usage: nbd_test.sh TESTS_FOLDER (with STRAKE, BUILD, PATTERN in the environment)
here=$(cd "$(dirname "$0")" && pwd)
. "$1/lib.sh"
requires nbdkit nbdinfo nbdcopy python3
cd "$T" || exit 1

plugin=$BUILD/src/export/nbd/nbdkit-strake-plugin.so
[ -f "$plugin" ] || skip "the plugin is not built"
uri="nbd+unix:///?socket=$T/nbd"

# start ARGUMENT…: nbdkit with the plugin in the background, listening on $T/nbd.
start() {
	rm -f nbd
	nbdkit -f -U "$T/nbd" "$plugin" "$@" 2>said &
	server=$!
	until_true 10 [ -S "$T/nbd" ] || give_up "nbdkit does not start: $(cat said)"
}

end() {
	kill $server
	wait $server
}

all_words() {
	while read -r word; do
		grep -qi -e "$word" said || return 1
	done <words
}

# nbdkit with the plugin must refuse the arguments after --, with all the words.
plugin_refuses() {
	what=$1
	shift
	: >words
	while [ "$1" != -- ]; do
		printf '%s\n' "$1" >>words
		shift
	done
	shift
	if timeout 20 nbdkit -f -U - "$plugin" "$@" --run true >said 2>&1; then
		not_ok "$what: served it"
	elif [ "$(grep -c 'error:' said)" = 1 ] && all_words; then
		ok "$what: refused, once, with words"
	else
		not_ok "$what: words"
		explain said
	fi
}

mkd 3 16M
runs "create" create md0 --level 0 --raid-devices 3 --chunk 64 --run --export=none d0 d1 d2
size=$((3 * 15 * 1048576))
truncate -s $size whole other
"$PATTERN" write whole 1
"$PATTERN" write other 2

snap d0 d1 d2
plugin_refuses "no member" 'member='  -- name=md7
plugin_refuses "a parameter that does not exist" 'chunk=64' -- member=d0 chunk=64
plugin_refuses "a layout that does not exist" 'layout=left' 'original' -- layout=left member=d0
plugin_refuses "a missing file" "$T/no" 'no such file' -- member=no
plugin_refuses "no superblock" "$T/whole" 'superblock' -- member=whole
plugin_refuses "a member missing" 'slot 1' -- member=d0 member=d2
plugin_refuses "a member twice" "$T/d0" 'same' -- member=d0 member=d1 member=d2 member=./d0
ln -s d0 link
plugin_refuses "a member twice, by a link" "$T/link" "$T/d0" 'same' -- \
	member=d0 member=d1 member=d2 member=link
same "what was refused"

start d2 d0 d1
nbdinfo --json "$uri" >info
for fact in can_flush can_fua can_trim can_zero can_fast_zero can_multi_conn; do
	check "announces $fact" grep -q "\"$fact\": true" info
done
check "announces blocks of 512" grep -q '"block_size_minimum": 512' info
check "announces the size" grep -q "\"export-size\": $size" info
check "describes itself" grep -q '"description": "md raid0 array' info
plugin_refuses "members of a running server" 'd0' 'use\|lock' -- member=d0 member=d1 member=d2

check "write by 4 connections" nbdcopy --connections=4 --flush whole "$uri"
nbdcopy --connections=4 --request-size=4096 other "$uri" 2>said1 &
writer=$!
check "another client reads meanwhile" nbdcopy "$uri" null:
wait $writer
check "two clients at once: the writer" [ $? = 0 ]
nbdcopy "$uri" - | "$PATTERN" verify - 2 0 $size
check "content" [ $? = 0 ]
if command -v qemu-io >/dev/null; then
	io() { qemu-io -f raw "$@" "$uri" 2>&1; }
	io -c "write -P 7 1048065 3000" -c "write -f -P 8 65024 1024" -c "write -z 200K 64K" \
		-c "discard 1M 1M" -c "flush" >said
	check "qemu: odd writes, FUA, zeroes, discard, flush" sh -c "! grep -qi 'fail\|error' said"
	io -c "read -P 7 1048065 511" -c "read -P 8 65024 1024" -c "read -P 0 200K 64K" >said
	check "qemu: reads them back" sh -c "! grep -qi 'fail\|error' said"
fi
for command in read write zero trim; do
	check "an unaligned $command gets EINVAL" \
		[ "$(python3 "$here/unaligned.py" nbd $command 1 512)" = 22 ]
	check "an unaligned length of $command gets EINVAL" \
		[ "$(python3 "$here/unaligned.py" nbd $command 0 100)" = 22 ]
	check "an aligned $command does not" \
		[ "$(python3 "$here/unaligned.py" nbd $command 512 512)" = 0 ]
done
end
"$STRAKE" cat --offset 2M --length 4M d0 d1 d2 | "$PATTERN" verify - 2 2097152 4194304
check "strake cat finds what the clients wrote" [ $? = 0 ]

snap d0 d1 d2
for how in -r readonly=1; do
	check "$how: says so" timeout 20 nbdkit -U - "$plugin" d0 d1 d2 $how --run 'nbdinfo --is readonly $uri'
	check "$how: a write fails" sh -c \
		"! timeout 20 nbdkit -U - '$plugin' d0 d1 d2 $how --run 'nbdcopy whole \$uri'"
done
same "read-only"
check "plain calls: write" timeout 60 nbdkit -U - "$plugin" sync=1 d0 d1 d2 --run \
	'nbdcopy --connections=2 --flush whole $uri'
"$STRAKE" cat d0 d1 d2 | "$PATTERN" verify - 1 0 $size
check "plain calls: content" [ $? = 0 ]

# A name makes a server of nbdkit's an array as any other.
start name=md5 d0 d1 d2
runs "detail" detail --json md5
check "detail: the export" [ "$(json export)" = nbd ]
refused "partprobe" 1 'md5' 'NBD' 'client' -- partprobe md5
runs "stop" stop md5
wait $server
check "stop ends nbdkit" [ $? = 0 ]

runs "assemble --export=nbd" assemble md0 "--export=nbd:$T/own" d0 d1 d2 || finish
runs "detail" detail --json md0
check "detail: the node" [ "$(json node)" = "$T/own" ]
refused "a member in use" "1 2" 'd[012]' 'use' -- assemble md1 "--export=nbd:$T/own2" d0 d1 d2
nbdcopy "nbd+unix:///?socket=$T/own" - | "$PATTERN" verify - 1 0 $size
check "content" [ $? = 0 ]
runs "stop" stop md0
check "the socket is gone" [ ! -e "$T/own" ]

: >taken
refused "a file in the socket's place" 1 'taken' 'no socket' -- \
	assemble md0 "--export=nbd:$T/taken" d0 d1 d2
check "it is still there" [ -f taken ]
refused "a folder that is not there" 1 'nowhere' -- assemble md0 "--export=nbd:$T/nowhere/s" d0 d1 d2
refused "a path that is too long" 1 'shorter' -- \
	assemble md0 "--export=nbd:$T/$(printf '%0100d' 0)" d0 d1 d2
program=$STRAKE
printf '#!/bin/sh\nPATH=/nonexistent exec "%s" "$@"\n' "$program" >without
chmod +x without
STRAKE=$T/without
refused "no nbdkit" 1 'install the package nbdkit' -- assemble md0 "--export=nbd:$T/own" d0 d1 d2
STRAKE=$program
runs "none of that left anything behind" assemble md0 "--export=nbd:$T/own" d0 d1 d2
runs "stop" stop md0
finish
