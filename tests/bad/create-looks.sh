#!/bin/sh
# SPDX-License-Identifier: MIT
# create looks before it writes: what lives on a device is listed, and needs --force or --run.
# Nobody is asked anything when standard input is no terminal.
. "${0%/*}/../lib.sh"
requires mkfs.ext4 sfdisk sgdisk mkswap

c="create md0 --export=none --level 0 --raid-devices 2"

# holds WHAT WORDS: d1 holds something; create must see it, and must do as told with --force or --run.
holds() {
	snap d0 d1
	refused "$1" 1 'd1' "$2" '--force|--run' -- $c d0 d1
	same "$1"
}

mkd 2 32M
mkfs.ext4 -q -L precious d1
holds "ext4 file system" 'ext4'

mkd 2 32M
echo 'start=2048' | sfdisk -q d1
holds "DOS partition table" 'partition|dos|mbr'

mkd 2 32M
sgdisk -o d1 >/dev/null
holds "GPT" 'gpt|partition'

mkd 2 32M
sgdisk -o d1 >/dev/null
dd if=/dev/zero of=d1 bs=512 count=34 conv=notrunc status=none
holds "backup GPT only" 'gpt|partition'

mkd 2 32M
mkswap d1 >/dev/null 2>&1
holds "swap" 'swap'

if command -v cryptsetup >/dev/null; then
	mkd 2 32M
	echo secret | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 \
		--pbkdf-force-iterations 1000 d1 - >/dev/null 2>&1
	holds "LUKS" 'luks'
fi

for metadata in 0.90 1.0 1.1 1.2; do
	mkd 2 32M
	runs "create with metadata $metadata" $c --metadata $metadata d0 d1
	rm -f d0
	truncate -s 32M d0
	holds "member of another array, metadata $metadata" 'raid|array|md'
done

mkd 2 32M
mkfs.ext4 -q d1
runs "with --force" $c --force d0 d1
runs "examine finds the new array" examine d0 d1
mkd 2 32M
mkfs.ext4 -q d1
runs "with --run" $c --run d0 d1
runs "examine finds the new array" examine d0 d1
finish
