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
refused "chunk no power of two where the level needs it" "1 2" 'power of (two|2)' -- \
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
for level in multipath faulty; do
	refused "level $level" 1 'cannot be created' -- $c --level $level --raid-devices 3 d0 d1 d2
done

three="--raid-devices 3 d0 d1 d2"
refused "RAID 6 of three" 1 'at least 4' -- $c --level 6 $three
refused "RAID 1 with a chunk" 1 'chunk' -- $c --level 1 --chunk 64 $three
refused "RAID 1 with a layout" 2 'left-symmetric' -- $c --level 1 --layout left-symmetric $three
refused "RAID 10 with more copies than members" 1 'at least 4' -- $c --level 10 --layout n4 $three
refused "RAID 10 with one copy" 1 'layout' -- $c --level 10 --layout n1 $three
refused "all members missing" 1 'missing' -- $c --level 1 --raid-devices 2 missing missing
refused "RAID 5 with too much missing" 1 'not enough' -- \
	$c --level 5 --raid-devices 3 d0 missing missing
refused "a spare is missing" 1 'spare' -- $c --level 1 --raid-devices 2 --spare-devices 1 d0 d1 missing
refused "only spares" 1 'spare' -- $c --level 1 --spare-devices 3 d0 d1 d2
refused "spares are not given" 1 'enough' -- $c --level 1 --raid-devices 2 --spare-devices 2 d0 d1 d2
refused "spare-devices is no number" 2 'spare' -- $c --level 1 --spare-devices=-1 d0 d1
refused "spare for RAID 0" 1 'spare' -- $c --level 0 --spare-devices 1 d0 d1 d2
refused "bitmap for RAID 0" 1 'bitmap' -- $r --bitmap=internal d0 d1
refused "bitmap elsewhere" 1 'not yet supported' -- $c --level 1 --bitmap=/tmp/x d0 d1
refused "bitmap of an unknown kind" 2 'bitmap' -- $c --level 1 --bitmap=inside d0 d1
refused "bitmap chunk that is no power of two" 2 'bitmap chunk' -- \
	$c --level 1 --bitmap=internal --bitmap-chunk=3K d0 d1
refused "bitmap chunk too small for the room" 1 'bitmap' -- \
	$c --level 1 --bitmap=internal --bitmap-chunk=512s --size 10M d0 d1 --data-offset=16s
refused "bitmap and the policy that has none" 1 'contradict' -- \
	$c --level 1 --bitmap=internal --consistency-policy=resync d0 d1
refused "unknown policy" 2 'policy' -- $c --level 1 --consistency-policy=hope d0 d1
refused "policy that does not run yet" 1 'not yet supported' -- \
	$c --level 5 --consistency-policy=ppl $three
refused "write-behind without a bitmap" 1 'bitmap' -- \
	$c --level 1 --write-behind --bitmap=none d0 d1
refused "write-behind at another level" 1 'raid1' -- $c --level 5 --write-behind=3 $three
same "refused create"

truncate -s 24M d1
snap d0 d1
refused "0.90 RAID 0 of unequal members" 1 '0\.90' 'd[01]|unequal|size' -- $r --metadata 0.90 d0 d1
same "refused 0.90"
check "nothing runs" nothing_left md0
finish
