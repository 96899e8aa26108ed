#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes corpus/intent: bitmaps and bad-block logs, good and hostile. See fuzz_intent.c."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
BITMAP, LOG = 0, 1
RAID10 = 2 << 1
SECTORS = 1 << 20
UNUSED = 0xFFFFFFFFFFFFFFFF


def write(name, choice, area):
    with open(os.path.join(HERE, "intent", name), "wb") as out:
        out.write(bytes([choice]) + area)


def bitmap(version=4, sync=SECTORS, chunk=1 << 20, events=20, state=0, bits=b"\xff" * 64):
    head = struct.pack("<II16sQQQIIIIII", 0x6D746962, version, b"\0" * 16, events, events, sync,
                       state, chunk, 5, 0, 0, 0)
    return head.ljust(256, b"\0") + bits


def log(*ranges):
    return b"".join(struct.pack("<Q", start << 10 | length) for start, length in ranges).ljust(
        4096, b"\xff")


write("empty", BITMAP, b"")
write("bitmap", BITMAP, bitmap())
write("bitmap-raid10", BITMAP | RAID10, bitmap(sync=2 * SECTORS))
write("bitmap-host-endian", BITMAP, bitmap(version=3))
write("bitmap-clustered", BITMAP, bitmap(version=5))
write("bitmap-lockless", BITMAP, bitmap(version=6))
write("bitmap-stale", BITMAP, bitmap(events=3))
write("bitmap-says-stale", BITMAP, bitmap(state=2))
write("bitmap-chunk-0", BITMAP, bitmap(chunk=0))
write("bitmap-chunk-odd", BITMAP, bitmap(chunk=513))
write("bitmap-chunk-largest", BITMAP, bitmap(chunk=1 << 31))
write("bitmap-larger-than-room", BITMAP, bitmap(chunk=512))
write("bitmap-sync-huge", BITMAP, bitmap(sync=UNUSED))
write("bitmap-sync-0", BITMAP, bitmap(sync=0))
write("log-empty", LOG, log())
write("log-kernel", LOG, log((100, 8), (5000, 1), (7024, 176), (6512, 512), (6000, 512)))
write("log-overlapping", LOG, log((100, 8), (104, 8), (90, 512)))
write("log-units", LOG | 4 << 1, log((100, 8), (5000, 1)))
write("log-length-0", LOG, log((100, 0)))
write("log-zeros", LOG, b"\0" * 4096)
write("log-wraps", LOG, log(((1 << 54) - 1, 512)))
write("log-full", LOG, log(*((1000 * i + 8, 4) for i in range(512))))
