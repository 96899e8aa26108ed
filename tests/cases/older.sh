#!/bin/sh
# SPDX-License-Identifier: MIT
# Case 38 of the field cases on metadata: the members of a mirror of three leave one after the other
# while it is written to; later they lie there in any combination. Whatever is named, in whatever
# order: with the one that left last nothing acknowledged is lost, and it wins over those that
# left before; without it nothing starts by itself. And two that went on apart are never mixed.
. "${0%/*}/../lib.sh"
requires_fuse
node=$STRAKE_RUNTIME_DIR/md0

# leaves ORDER: d0, d1, d2 leave in this order, and pattern 1, 2, 3 is written before each.
leaves() {
	rm -f d? m?
	mkd 3 6M
	run create md0 --level 1 --raid-devices 3 ${bitmap:-} --export=fuse d0 d1 d2
	[ $rc -eq 0 ] || give_up "create"
	seed=1
	for member in "$@"; do
		"$PATTERN" write "$node" $seed >/dev/null || not_ok "write $seed"
		seed=$((seed + 1))
		[ $seed -gt 3 ] && continue # the array cannot do without its last
		run md0 --fail "$member" --remove "$member"
		[ $rc -eq 0 ] || not_ok "$member leaves: $(cat "$T/err")"
	done
	run stop md0
}

# content: the seed that the running array holds, or none.
content() {
	for seed in 3 2 1; do
		"$PATTERN" verify "$node" $seed >/dev/null 2>&1 && echo $seed && return
	done
	echo none
}

# combination LAST MEMBER…: what assemble says to these.
combination() {
	last=$1
	shift
	snap d0 d1 d2
	run assemble md0 --readonly --export=fuse "$@"
	plain=$rc
	if [ $rc -eq 0 ]; then
		plain=$(content)
		run stop md0
	fi
	run assemble md0 --readonly --run --export=fuse "$@"
	insisted=$rc
	if [ $rc -eq 0 ]; then
		insisted=$(content)
		run stop md0
	fi
	sha256sum --quiet -c "$T/.snap" >/dev/null 2>&1 || echo "$*: a member was written"
	case " $* " in
	# It knows that the others are gone: it is all there is to the array.
	*" $last "*) [ "$plain $insisted" = "3 3" ] || echo "$*: seeds $plain, with --run $insisted; wanted 3 3" ;;
	# Those that left knew the others as good: without those nothing starts by itself.
	*) [ "$plain" = 1 ] || echo "$*: started by itself, with seed $plain" ;;
	esac
}

orders="d0,d1,d2 d0,d2,d1 d1,d0,d2 d1,d2,d0 d2,d0,d1 d2,d1,d0"
for bitmap in --bitmap=none --bitmap=internal; do
	for order in $orders; do
		leaves $(echo $order | tr , ' ')
		last=${order##*,}
		wrong=
		for named in d0 d1 d2 "d0 d1" "d1 d0" "d0 d2" "d2 d0" "d1 d2" "d2 d1" $orders; do
			wrong="$wrong$(combination "$last" $(echo "$named" | tr , ' '))"
		done
		check "$bitmap: they leave as $order: all combinations" [ -z "$wrong" ] || echo "#  $wrong"
	done
done

# The one that left first is started alone by force, and written; then all are there.
leaves d0 d1 d2
runs "the oldest alone, insisted" assemble md0 --run --export=fuse d0
check "it holds what was there when it left" [ "$(content)" = 1 ]
check "it is written" "$PATTERN" write "$node" 4
runs "stop" stop md0
snap d0 d1 d2
for named in "d0 d2" "d2 d0" "d0 d1 d2"; do
	run assemble md0 --run --export=fuse $named
	if [ $rc -eq 0 ]; then
		seed=$(content)
		"$PATTERN" verify "$node" 4 >/dev/null 2>&1 && seed=4
		check "$named, which went apart: one of both, whole" [ "$seed" = 3 ] || [ "$seed" = 4 ]
		check "$named, which went apart: it is told" grep -qE 'd[02]' "$T/err"
		run stop md0
	else
		check "$named, which went apart: refused with reason" grep -qE 'd[02]' "$T/err"
	fi
	same "$named, which went apart"
done
runs "the newest" assemble md0 --run --export=fuse d2
run md0 --re-add "$T/d0"
if [ $rc -eq 0 ]; then
	run wait md0
	check "what went apart is not taken back by its bitmap" "$PATTERN" verify "$node" 3
	run md0 --fail d2
	check "what went apart holds what the array holds" "$PATTERN" verify "$node" 3
else
	ok "what went apart is not re-added"
	runs "it is added anew" md0 --add --force d0
	run wait md0
	run md0 --fail d2
	check "then it holds what the array holds" "$PATTERN" verify "$node" 3
fi
runs "stop" stop md0
check "nothing runs" nothing_left md0
finish
