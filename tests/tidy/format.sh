#!/bin/sh
# SPDX-License-Identifier: MIT
# All C sources are as clang-format leaves them. usage: format.sh SOURCE_ROOT
cd "$1" || exit 1
command -v clang-format >/dev/null || { echo "skipped: clang-format is not installed"; exit 77; }
clang-format --version | grep -q 'version 14\.' ||
	{ echo "skipped: other versions than 14 format otherwise"; exit 77; }
files=$(find src tests fuzz bench -name '*.[ch]')
[ -n "$files" ] || { echo "not ok - no sources found"; exit 1; }
# shellcheck disable=SC2086 # names without spaces
if clang-format --dry-run -Werror $files; then
	echo "ok - formatted"
else
	echo "not ok - run: clang-format -i on the files named above"
	exit 1
fi
