# SPDX-License-Identifier: MIT
# What both sides say, compared. Sourced after boot.sh.

# our_bitmaps FILE...: as a guest's bitmaps()
our_bitmaps() {
	for bitmap_file; do "$STRAKE" --examine-bitmap "$bitmap_file" | sed 1d; done
}

# same_bitmaps MDADMS OURS: both are there and hold bitmaps
same_bitmaps() {
	grep -q ' Bitmap : [0-9]* bits' "$1" && diff -u "$1" "$2"
}

# no_complaint DMESG: md started something there and found nothing wrong
no_complaint() {
	grep -q md "$1" && ! grep -E 'md|raid' "$1" |
		grep -iE 'kick|invalid|fail|error|unknown|cannot|warn|bad|please|refus|mismatch'
}
