#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The source checks itself: layers, lengths, forbidden calls.

usage: tidy.py SOURCE_ROOT BUILD_ROOT

Rules (docs/architecture.md says why):
 1. Arrows point down: a folder includes only from the folders listed for it.
 2. geometry, md, parity and engine call nothing of the operating system. Checked on the compiled
    archives: each undefined symbol must be on a short list of plain C library functions.
 3. The I/O path allocates nothing: in engine/ only start.c may allocate, in parity/ nobody.
 4. Functions have at most 70 lines, files at most 800.
 5. Headers have a guard; every file names its licence.
Exceptions are listed here by file or function, with the reason. The lists are empty by default.
"""
import os
import re
import subprocess
import sys

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
LINE_COLUMNS_MAX = 100

# "path/file.c:function" or "path/file.c": reason.
LONG_FUNCTIONS = {}
LONG_FILES = {}

# What each folder may include from (itself always). Lowest first.
LAYERS = {
    "util": [],
    "world": [],
    "geometry": ["util"],
    "parity": ["util"],
    "md": ["util", "geometry"],
    "engine": ["util", "world", "geometry", "parity", "md"],
    "sim": ["util", "world"],
    "simulate": ["util", "world", "geometry", "md", "engine", "sim"],
    "io": ["util", "world"],
    "probe": ["util", "io", "world", "md", "geometry"],
    "control": ["util", "io", "world", "md", "geometry", "engine", "probe"],
    "export": ["util", "io", "world", "md", "geometry", "engine", "probe", "control"],
    "cli": ["util", "io", "world", "md", "geometry", "engine", "probe", "control", "export",
            "simulate"],
}

PURE = ["geometry", "md", "parity", "engine"]

# Functions of the C library and of ISA-L (pure arithmetic on the caller's memory) that neither
# allocate behind our back nor reach the operating system.
# snprintf and friends format into memory; calloc and free are bounded by rule 3.
PURE_SYMBOLS = set("""
memcpy memmove memset memcmp memchr strlen strnlen strcmp strncmp strcasecmp strncasecmp strchr
strrchr strstr strspn strcspn strcpy stpcpy strtoul strtoull strtol strtoll strtod
__isoc99_sscanf snprintf vsnprintf
calloc malloc aligned_alloc free qsort bsearch abort __assert_fail __ctype_b_loc __ctype_tolower_loc tolower
toupper isdigit isxdigit isspace
__memcpy_chk __memset_chk __snprintf_chk __vsnprintf_chk __strcpy_chk __stack_chk_fail
xor_gen pq_gen gf_vect_mul_init gf_vect_mad gf_vect_dot_prod isal_zero_detect __cpu_model bcmp
_GLOBAL_OFFSET_TABLE_
""".split())

FUNCTION_START = re.compile(r"^[A-Za-z_].*\)\s*$|^\s.*\)\s*$|^\)\s*$")

problems = []


def complain(path, line, text):
    problems.append(f"{path}:{line}: {text}")


def sources(root):
    for top in ("src", "fuzz", "bench", "tests"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def function_name(lines, brace):
    """The identifier before the parameter list that ends above line `brace`."""
    text = ""
    for back in range(brace - 1, max(brace - 12, -1), -1):
        text = lines[back] + " " + text
        if lines[back] and not lines[back][0].isspace():
            break
    found = re.search(r"([A-Za-z_]\w*)\s*\(", text)
    return found.group(1) if found else "?"


def check_functions(path, lines):
    start = None
    for number, line in enumerate(lines):
        if line == "{" and start is None:
            start = number
        elif line.startswith("}") and start is not None:
            length = number - start - 1
            name = function_name(lines, start)
            if length > FUNCTION_LINES_MAX and f"{path}:{name}" not in LONG_FUNCTIONS:
                complain(path, start + 1,
                         f"{name}() has {length} lines, more than {FUNCTION_LINES_MAX}")
            start = None


def check_file(path, lines):
    if len(lines) > FILE_LINES_MAX and path not in LONG_FILES:
        complain(path, 1, f"{len(lines)} lines, more than {FILE_LINES_MAX}")
    if not lines or "SPDX-License-Identifier: MIT" not in lines[0]:
        complain(path, 1, "the first line does not name the licence")
    if path.endswith(".h") and not any(line.startswith("#ifndef STRAKE_") for line in lines[:4]):
        complain(path, 1, "header without a STRAKE_… guard")
    for number, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > LINE_COLUMNS_MAX:
            complain(path, number, f"longer than {LINE_COLUMNS_MAX} columns")
        if line != line.rstrip():
            complain(path, number, "white space at the end of the line")


def check_layers(path, lines):
    parts = path.split("/")
    if parts[0] != "src" or path.endswith(("_test.c", "_rig.h")):  # rigs: for tests only
        return
    folder = parts[1]
    if folder not in LAYERS:
        complain(path, 1, f"folder {folder} has no place in the layers (LAYERS in tidy.py)")
        return
    for number, line in enumerate(lines, 1):
        found = re.match(r'#include "([^"/]+)/', line)
        if found and found.group(1) != folder and found.group(1) not in LAYERS[folder]:
            complain(path, number, f"{folder} may not use {found.group(1)}")
        if re.match(r'#include "[^/"]+"', line):
            complain(path, number, "include by the path from src/")


def check_allocation(path, lines):
    if not path.startswith(("src/engine/", "src/parity/")) or path.endswith("_test.c") or \
            path == "src/engine/start.c":
        return
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(malloc|calloc|realloc|aligned_alloc|free|strdup|alloca)\s*\(", line):
            complain(path, number, "allocates in the I/O path; only start.c may")


def defined_in(archive):
    out = subprocess.run(["nm", "--defined-only", "-P", archive], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[0] for line in out.splitlines() if len(line.split()) > 2}


def check_symbols(build):
    own = set()
    archives = {}
    for folder in PURE + ["util"]:
        archive = os.path.join(build, "src", folder, f"lib{folder}.a")
        if os.path.exists(archive):
            archives[folder] = archive
            own |= defined_in(archive)
    for folder in PURE:
        if folder not in archives:
            complain(f"src/{folder}", 1, "its archive was not found in the build folder")
    for folder in PURE:
        if folder not in archives:
            continue
        out = subprocess.run(["nm", "-u", "-P", archives[folder]], capture_output=True,
                             text=True, check=True).stdout
        for line in out.splitlines():
            if len(line.split()) < 2:
                continue
            symbol = line.split()[0].split("@")[0]
            if symbol in own or symbol in PURE_SYMBOLS or \
                    symbol.startswith(("__asan", "__ubsan", "__sanitizer", "__gcov")):
                continue
            complain(f"src/{folder}", 1, f"uses {symbol}(), which is not on the list of plain "
                     "functions; disks, time and randomness come through the world")


def main(root, build):
    count = 0
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        check_file(path, lines)
        check_functions(path, lines)
        check_layers(path, lines)
        check_allocation(path, lines)
        count += 1
    check_symbols(build)
    for problem in problems:
        print(f"not ok - {problem}")
    if count < 20:
        print(f"not ok - only {count} source files were found under {root}")
        return 1
    if not problems:
        print(f"ok - {count} source files keep the rules")
    return 1 if problems else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
