#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NBD clients that no program of libnbd's wants to be.

usage: nbd_client.py SOCKET hang-up ROUNDS     ask for much, leave without taking the answers; counts
                                               the rounds in which the server did not answer at first
       nbd_client.py SOCKET unfinished OFFSET  send a write, say so, wait for the end of the connection
       nbd_client.py SOCKET flush 0            flush; prints the error number of the reply
"""
import socket
import struct
import sys
import time

REQUEST_MAGIC = 0x25609513
READ, WRITE, FLUSH = 0, 1, 3
BLOCK = b"strake\n\0" * 512


def request(command, offset, length, handle=1):
    return struct.pack(">IHHQQI", REQUEST_MAGIC, 0, command, handle, offset, length)


def connect(path):
    server = socket.socket(socket.AF_UNIX)
    server.settimeout(30)
    server.connect(path)
    stream = server.makefile("rb")
    if len(stream.read(18)) != 18:  # magic, magic, handshake flags
        raise EOFError
    # Fixed newstyle, no zeroes; NBD_OPT_EXPORT_NAME "".
    server.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
    if len(stream.read(10)) != 10:  # size, flags
        raise EOFError
    return server, stream


def hang_up(path, rounds):
    """A server that died under the round before resets connections that waited for it."""
    lost = 0
    for _ in range(rounds):
        try:
            server, stream = connect(path)
            server.sendall(b"".join(request(READ, i * 65536, 65536, i) for i in range(64)))
            stream.close()
            server.close()
        except (EOFError, ConnectionResetError, BrokenPipeError):
            lost += 1
            time.sleep(0.01)
    print(lost)


def main():
    path, what, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "hang-up":
        return hang_up(path, number)
    server, stream = connect(path)
    if what == "flush":
        server.sendall(request(FLUSH, 0, 0))
        return print(struct.unpack(">II", stream.read(8))[1])
    server.sendall(request(WRITE, number, len(BLOCK)) + BLOCK)
    print("sent", flush=True)
    return stream.read()


main()
