#!/bin/sh
# SPDX-License-Identifier: MIT
# create: numbers and words that make no array. Exit codes as mdadm 4.2 gives them: 2 for what is no
# number or no level at all, 1 for what does not fit. Nothing is written.
. "${0%/*}/../lib.sh"

mkd 3 16M
for i in 0 1 2; do "$PATTERN" write d$i $i; done
snap d0 d1 d2

c="create md0 --export=none --run"

refused "too few members" 1 '3|raid-devices|member|device' -- $c --level 0 --raid-devices 3 d0 d1
refused "too many members" 1 'd2|3' '2' -- $c --level 0 --raid-devices 2 d0 d1 d2
refused "one member without --force" 2 'force' -- $c --level 0 --raid-devices 1 d0
refused "no member" 2 'member|device' -- $c --level 0 --raid-devices 2
refused "raid-devices 0" 2 '0' -- $c --level 0 --raid-devices 0 d0 d1
refused "raid-devices is no number" 2 'many' -- $c --level 0 --raid-devices many d0 d1
refused "raid-devices negative" 2 '-2' -- $c --level 0 --raid-devices=-2 d0 d1
refused "raid-devices beyond all bounds" "1 2" 'device' -- \
	$c --level 0 --raid-devices 4294967298 d0 d1
refused "missing member of RAID 0" 1 'missing' -- $c --level 0 --raid-devices 2 d0 missing
refused "missing member of linear" 1 'missing' -- $c --level linear --raid-devices 2 d0 missing

r="$c --level 0 --raid-devices 2"
refused "chunk 0" "1 2" 'chunk' '0' -- $r --chunk 0 d0 d1
refused "chunk is no number" 2 'chunk' 'xyz' -- $r --chunk xyz d0 d1
refused "chunk negative" 2 'chunk' -- $r --chunk=-64 d0 d1
refused "chunk of 1 KiB" "1 2" 'chunk' -- $r --chunk 1 d0 d1
refused "chunk larger than a member" "1 2" 'chunk|small' 'd[01]' -- $r --chunk 32M d0 d1
refused "chunk overflows" "1 2" 'chunk' -- $r --chunk 99999999999999999999 d0 d1
refused "chunk no power of two where the level needs it" "1 2" 'power of (two|2)|not yet supported' -- \
	$c --level 5 --raid-devices 3 --chunk 12 d0 d1 d2
refused "layout that does not exist" 2 'weird' -- $r --layout weird d0 d1
refused "layout of another level" 2 'left-symmetric' -- $r --layout left-symmetric d0 d1
refused "metadata that does not exist" 2 '7' -- $r --metadata 7 d0 d1
refused "level that does not exist, by number" 2 '7' 'level' -- $c --level 7 --raid-devices 2 d0 d1
refused "level that does not exist, by name" 2 'raidx' 'level' -- \
	$c --level raidx --raid-devices 2 d0 d1
refused "empty level" 2 'level' -- $c --level= --raid-devices 2 d0 d1
refused "no level" 2 'level' -- $c --raid-devices 2 d0 d1
refused "unknown option" 2 'frobnicate' -- $r --frobnicate d0 d1
refused "unknown export" 2 'teleport' -- create md0 --run --export=teleport --level 0 --raid-devices 2 d0 d1
refused "name that cannot be a name" 2 'name|md0/x' -- \
	create 'md0/x' --export=none --run --level 0 --raid-devices 2 d0 d1
refused "uuid that is none" 2 'uuid|zzz' -- $r --uuid zzz d0 d1
refused "size larger than the members" 1 'size|small' -- $r --size 1G d0 d1
refused "data offset beyond the members" "1 2" 'offset|small' -- $r --data-offset 1G d0 d1
for level in 1 4 5 6 10; do
	refused "level $level" 1 'not yet supported' -- $c --level $level --raid-devices 3 d0 d1 d2
done
same "refused create"

truncate -s 24M d1
snap d0 d1
refused "0.90 RAID 0 of unequal members" 1 '0\.90' 'd[01]|unequal|size' -- $r --metadata 0.90 d0 d1
same "refused 0.90"
check "nothing runs" nothing_left md0
finish
