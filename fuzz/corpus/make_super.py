#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes corpus/super: some golden superblocks, and hostile ones made of them.

Only needed when the input format of fuzz_super.c or the golden file changes; the results are
committed.
"""
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "..", "tests", "golden", "supers.txt")
VERSIONS = {"0.90": 0, "1.0": 1, "1.1": 2, "1.2": 3}
CHECKSUM, POSITION, EVERYWHERE = 4, 8, 16


def goldens():
    member = None
    for line in open(GOLDEN, encoding="utf-8"):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "member":
            member = {"name": rest, "block": bytearray(4096)}
        elif word == "sectors":
            member["sectors"] = int(rest)
        elif word == "say" and rest.startswith("Version="):
            member["version"] = VERSIONS[re.sub(r"^(0\.90).*", r"\1", rest[8:])]
        elif re.fullmatch("[0-9a-f]{3}", word):
            row, at = bytes.fromhex(rest), int(word, 16)
            member["block"][at:] = row * ((4096 - at) // 32)
        elif word == "end":
            yield member


def write(name, flags, sectors, block):
    with open(os.path.join(HERE, "super", name), "wb") as out:
        out.write(bytes([flags]) + struct.pack("<Q", sectors) + bytes(block).rstrip(b"\0"))


HOSTILE = {  # name: [(byte, format, value)]
    "max-dev-60000": [(220, "<I", 60000)],
    "max-dev-1920": [(220, "<I", 1920)],
    "max-dev-odd": [(220, "<I", 127)],
    "max-dev-zero": [(220, "<I", 0)],
    "raid-disks-huge": [(92, "<I", 0xFFFFFFFF)],
    "raid-disks-zero": [(92, "<I", 0)],
    "data-offset-beyond": [(128, "<Q", 1 << 40)],
    "data-offset-wraps": [(128, "<Q", (1 << 64) - 8)],
    "data-size-wraps": [(136, "<Q", (1 << 64) - 1)],
    "size-wraps": [(80, "<Q", (1 << 64) - 1)],
    "dev-number-huge": [(160, "<I", 0xFFFFFFFF)],
    "new-offset-minimum": [(8, "<I", 0x40), (124, "<i", -(1 << 31))],
    "delta-disks-minimum": [(8, "<I", 4), (112, "<i", -(1 << 31))],
    "unknown-features": [(8, "<I", 0xFFFFE000)],
    "all-features": [(8, "<I", 0x1FFF)],
    "bad-blocks-huge": [(8, "<I", 8), (186, "<H", 0xFFFF)],
    "logical-block-512": [(224, "<I", 512)],
    "name-unterminated": [(32, "32s", b"x" * 32)],
    "layout-all-ones": [(72, "<i", 10), (76, "<I", 0xFFFFFFFF)],
}
HOSTILE_090 = {
    "raid-disks-28": [(40, "<I", 28)],
    "this-disk-huge": [(3968, "<I", 0xFFFFFFFF)],
    "size-huge": [(32, "<I", 0xFFFFFFFF)],
    "slot-huge": [(524, "<I", 0xFFFFFFFF)],
    "reshape-delta-minimum": [(8, "<I", 91), (188, "<i", -(1 << 31))],
}


def hostile(table, base, prefix):
    for name, changes in table.items():
        block = bytearray(base["block"])
        for at, form, value in changes:
            struct.pack_into(form, block, at, value)
        write(prefix + name, base["version"] | CHECKSUM | EVERYWHERE, base["sectors"], block)


def main():
    members = {m["name"]: m for m in goldens()}
    for name in ("linear-0.90-ubdb", "raid5-0.90-ubde", "raid0-1.0-ubdb", "raid1-1.1-ubdb",
                 "raid0-original-1.2-ubdb", "raid5-ppl-ubdb", "raid5-journal-ubde",
                 "raid1-rebuilding-ubdc", "raid1-badblocks-ubdc", "raid10-1.2-ubdb"):
        write("golden-" + name, members[name]["version"] | POSITION, members[name]["sectors"],
              members[name]["block"])
    hostile(HOSTILE, members["raid1-1.2-ubdb"], "hostile-")
    hostile(HOSTILE_090, members["raid1-0.90-ubdb"], "hostile-0.90-")
    write("tiny-device", 3, 24, members["raid1-1.2-ubdb"]["block"])
    write("empty", 3, 0, b"")
    return 0


sys.exit(main())
