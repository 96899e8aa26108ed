#!/bin/sh
# SPDX-License-Identifier: MIT
# Seeds that found bugs, and a fixed batch of every level. usage: seeds.sh STRAKE [RUNS]
strake=$1
runs=${2:-12}
here=$(dirname "$0")
failed=0

while IFS='|' read -r options what; do
	case $options in '#'* | '') continue ;; esac
	# shellcheck disable=SC2086 # options are words
	if output=$("$strake" sim $options --no-shrink 2>&1); then
		echo "ok - $options:$what"
	else
		echo "not ok - $options:$what"
		echo "$output" | sed 's/^/# /'
		failed=1
	fi
done <"$here/seeds.txt"

for level in 1 4 5 6 10; do
	if output=$("$strake" sim --seed 1000 --runs "$runs" --level $level --twice 2>&1); then
		echo "ok - level $level: $(echo "$output" | grep ' runs, ')"
	else
		echo "not ok - level $level"
		echo "$output" | sed 's/^/# /'
		failed=1
	fi
done

# The same seed is the same run to the byte, wherever the heap lies and whatever is in it.
one=$(MALLOC_PERTURB_=165 "$strake" sim --seed 11 --trace | grep -v 'each second' | sha256sum)
two=$(MALLOC_PERTURB_=90 LC_ALL=C SOMETHING=else setarch -R "$strake" sim --seed 11 --trace |
	grep -v 'each second' | sha256sum)
if [ "$one" = "$two" ]; then
	echo "ok - the trace of a seed is the same twice"
else
	echo "not ok - the trace of a seed differs"
	failed=1
fi
exit $failed
