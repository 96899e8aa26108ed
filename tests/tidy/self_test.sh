#!/bin/sh
# SPDX-License-Identifier: MIT
# The source check must be able to fail: break each rule in a copy and see it complain.
# usage: self_test.sh TIDY SOURCE_ROOT BUILD_ROOT
set -u
tidy=$1
source=$2
build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() {
	if "$tidy" "$work" "$build" 2>&1 | grep -q "$2"; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		failed=1
	fi
	rm -rf "$work/src"
	cp -r "$source/src" "$work/src"
}

cp -r "$source/src" "$work/src"
printf '#include "cli/show/show.h"\n' >>"$work/src/geometry/geometry.c"
expect "an arrow that points up is found" "geometry may not use cli"

{ echo 'void f(void)'; echo '{'; yes '	g();' | head -71; echo '}'; } >>"$work/src/md/super.c"
expect "a long function is found" "f() has 71 lines"

yes '/* */' | head -801 >>"$work/src/io/reactor.c"
expect "a long file is found" "more than 800"

printf 'void f(void)\n{\n\tfree(malloc(1));\n}\n' >>"$work/src/engine/spread.c"
expect "an allocation in the I/O path is found" "only start.c may"

# The build folder's archives are thin: they are reached by links, not copied.
mkdir -p "$work/bad/src/engine"
for layer in geometry md parity util; do
	ln -s "$build/src/$layer" "$work/bad/src/$layer"
done
printf '#include <fcntl.h>\nint f(void);\nint f(void)\n{\n\treturn open("/", 0);\n}\n' >"$work/os.c"
${CC:-cc} -c -o "$work/os.o" "$work/os.c"
ar rcs "$work/bad/src/engine/libengine.a" "$work/os.o"
build=$work/bad
expect "a system call in the engine is found" "uses open"
exit $failed
