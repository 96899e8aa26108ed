#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client that ignores the announced minimum block size.

usage: unaligned.py SOCKET read|write|zero|trim OFFSET LENGTH

Prints the error number of the server's reply. (libnbd's and qemu's programs obey the minimum.)
"""
import socket
import struct
import sys

COMMANDS = {"read": 0, "write": 1, "trim": 4, "zero": 6}


def main():
    path, command, offset, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    stream = server.makefile("rb")
    stream.read(18)  # magic, magic, handshake flags
    server.sendall(struct.pack(">I", 3))  # fixed newstyle, no zeroes
    server.sendall(b"IHAVEOPT" + struct.pack(">II", 1, 0))  # NBD_OPT_EXPORT_NAME ""
    stream.read(10)  # size, flags
    server.sendall(struct.pack(">IHHQQI", 0x25609513, 0, COMMANDS[command], 1, offset, length))
    if command == "write":
        server.sendall(b"x" * length)
    magic, error, _ = struct.unpack(">IIQ", stream.read(16))
    assert magic == 0x67446698
    print(error)


main()
