#!/usr/bin/env python3
"""Make golden/examine from images that the real md wrote (uml-init.sh makes them).

usage: make-examine.py FOLDER-OF-IMAGES

For each image, and for some edited copies: NAME.sb holds "sectors of the device", "sector of the
superblock", its 4096 bytes and, if there is a bitmap, the 512 bytes of its header; NAME.text,
NAME.brief and NAME.export are what mdadm 4.2 printed about the image, called "member".
"""
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def checksum(block):
    size = 256 + 2 * struct.unpack_from('<I', block, 220)[0]
    block = bytearray(block[:size])
    block[216:220] = bytes(4)
    total = sum(struct.unpack('<%dI' % (size // 4), block[:size & ~3]))
    if size % 4 == 2:
        total += struct.unpack('<H', block[-2:])[0]
    return ((total & 0xffffffff) + (total >> 32)) & 0xffffffff


def find(image):
    sectors = len(image) // 512
    for at in (8, 0, (sectors - 16) & ~7):
        if struct.unpack_from('<I', image, at * 512)[0] == 0xa92b4efc and \
                struct.unpack_from('<Q', image, at * 512 + 144)[0] == at:
            return at
    return (sectors & ~127) - 128


def store(name, image):
    at = find(image)
    block = image[at * 512:at * 512 + 4096]
    bitmap = bytes(512)
    if block[4] == 1 and block[8] & 1:
        where = at + struct.unpack_from('<i', block, 96)[0]
        bitmap = image[where * 512:where * 512 + 512]
    with open(os.path.join(HERE, 'examine', name + '.sb'), 'wb') as out:
        out.write(struct.pack('<QQ', len(image) // 512, at) + block + bitmap)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'member'), 'wb') as out:
            out.write(image)
        for form, words in (('text', ['--homehost=uml']), ('brief', ['--brief', '--verbose']),
                            ('export', ['--export'])):
            text = subprocess.run(['mdadm', '--examine', *words, 'member'], cwd=folder,
                                  env={'TZ': 'UTC', 'PATH': os.environ['PATH']}, check=True,
                                  capture_output=True).stdout
            with open(os.path.join(HERE, 'examine', name + '.' + form), 'wb') as out:
                out.write(text)


def edit(image, edits, fix=True):
    image = bytearray(image)
    at = find(image) * 512
    for form, offset, value in edits:
        struct.pack_into(form, image, at + offset, value)
    if fix:
        struct.pack_into('<I', image, at + 216, checksum(image[at:at + 4096]))
    return bytes(image)


PLAIN = ['raid0-2.0', 'raid0-uneq.1', 'raid0-alt.2', 'raid0-one.0', 'linear12.1', 'linear10r.0',
         'linear090.1', 'raid1.0', 'raid1-bm.1', 'raid1-090.0', 'raid1-090.2', 'raid1-090-bm.1',
         'raid4.1', 'raid5.2', 'raid5.3', 'raid5-090.0', 'raid5-ppl.0', 'raid5-miss.0', 'raid6.0',
         'raid6-n.1', 'raid10.0', 'raid10-f2.0', 'raid10-o2.2', 'raid5-journal.3', 'reshape.0',
         'reshape.3', 'replace.1', 'replace.2', 'faulty.0']

EDITS = {
    'short-used': ('raid1.0', [('<Q', 80, 40000)]),
    'long-data': ('raid1.0', [('<Q', 136, 50000)]),
    'offset-0': ('raid1.0', [('<Q', 128, 0)]),
    'offset-50': ('raid1.0', [('<Q', 128, 50)]),
    'offset-beyond': ('raid1.0', [('<Q', 128, 60000)]),
    'log-far': ('raid1.0', [('<i', 188, 200)]),
    'end-log-far': ('raid0-uneq.0', [('<i', 188, -100), ('<Q', 136, 49000)]),
    'end-too-long': ('raid0-uneq.0', [('<Q', 136, 60000)]),
    'level-99': ('raid1.0', [('<I', 72, 99)]),
    'level-multipath': ('raid1.0', [('<i', 72, -4), ('<Q', 80, 30000)]),
    'layout-99': ('raid1.0', [('<I', 72, 5), ('<I', 76, 99)]),
    'layout-near-offset': ('raid1.0', [('<I', 72, 10), ('<I', 76, 0x10202)]),
    'layout-raid0-0': ('raid1.0', [('<I', 72, 0), ('<I', 76, 0), ('<I', 8, 0x1000)]),
    'layout-raid0-7': ('raid1.0', [('<I', 72, 0), ('<I', 76, 7), ('<I', 8, 0x1000)]),
    'role-faulty': ('raid1.0', [('<H', 256, 0xfffe)]),
    'role-twice': ('raid1.0', [('<H', 260, 1)]),
    'role-thrice': ('raid1.0', [('<H', 260, 1), ('<H', 262, 1)]),
    'role-twice-raid0': ('raid0-2.0', [('<H', 260, 1)]),
    'role-journal': ('raid1.0', [('<H', 256, 0xfffd), ('<Q', 80, 1), ('<Q', 136, 10)]),
    'role-9': ('raid1.0', [('<H', 260, 9)]),
    'ppl-multiple': ('raid5-ppl.0', [('<I', 8, 0x800), ('<H', 186, 0)]),
    'features': ('raid1.0', [('<I', 8, 0x4a), ('<i', 124, -384), ('<Q', 152, 777), ('B', 184, 3)]),
    'reshape-level': ('raid1.0', [('<I', 8, 4), ('<I', 100, 6), ('<Q', 104, 100000),
                                  ('<i', 112, 1), ('<I', 116, 3), ('<I', 120, 256)]),
    'reshape-layout': ('raid1.0', [('<I', 8, 4), ('<I', 72, 5), ('<I', 100, 5), ('<Q', 104, 1000),
                                   ('<i', 112, -1), ('<I', 116, 3), ('<I', 120, 0)]),
    'reshape-10': ('raid1.0', [('<I', 8, 4), ('<I', 72, 10), ('<I', 76, 0x102), ('<I', 100, 10),
                               ('<Q', 104, 1000), ('<i', 112, 0), ('<I', 116, 0x201),
                               ('<I', 120, 0)]),
    'name-none': ('raid1.0', [('32s', 32, b'')]),
    'name-quotes': ('raid1.0', [('32s', 32, b'h:a \'b"c/d')]),
    'times': ('raid1.0', [('<Q', 64, 0xffffffffff), ('<Q', 192, 1 << 39)]),
    'size-9999': ('raid1.0', [('<Q', 80, 9999)]),
    'size-10000': ('raid1.0', [('<Q', 80, 10000)]),
    'size-below-2G': ('raid1.0', [('<Q', 80, 4194303)]),
    'size-2G': ('raid1.0', [('<Q', 80, 4194304)]),
    'size-below-2T': ('raid1.0', [('<Q', 80, 4294967295)]),
    'size-2T': ('raid1.0', [('<Q', 80, 4294967296)]),
}


def main():
    def load(name):
        with open(os.path.join(sys.argv[1], name + '.img'), 'rb') as image:
            return image.read()

    for name in PLAIN:
        store(name, load(name))
    for name, (base, edits) in EDITS.items():
        store(name, edit(load(base), edits))
    store('checksum-wrong', edit(load('raid1.0'), [('<Q', 200, 5)], fix=False))
    store('cut-short', load('raid0-2.0')[:20 << 20])
    store('grown', load('raid1.0') + bytes(6 << 20))


main()
