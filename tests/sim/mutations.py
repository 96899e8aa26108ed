#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Break one rule of the engine at a time, and see whether the simulator notices.

usage: mutations.py [--runs N] [--jobs N] [--only NAME,...]

Each line of mutations.txt is applied to a copy of the tree, the program is built, and the batch of
seeds is run until one fails. Prints which check caught which mutation after how many runs, and
fails if fewer than 95 of 100 are caught.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEVELS = ["1", "5", "6", "10"]


def mutations():
    with open(os.path.join(HERE, "mutations.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            name, path, old, new = line.rstrip("\n").split(" ;; ")
            yield name, path, unescape(old), unescape(new)


def unescape(text):
    return text.replace("\\n", "\n").replace("\\t", "\t")


def build(folder):
    return subprocess.run(["ninja", "-C", os.path.join(folder, "build"), "strake"],
                          capture_output=True, text=True)


def run(folder, runs):
    """(check, runs until it was caught), or None."""
    done = 0
    step = max(runs // 12, 1)
    while done < runs:
        for level in LEVELS:
            out = subprocess.run([os.path.join(folder, "build", "strake"), "sim", "--seed",
                                  str(5000 + done), "--runs", str(step), "--level", level,
                                  "--no-shrink", "--first-failure"],
                                 capture_output=True, text=True).stdout
            found = re.search(r"FAILED: seed (\d+) \((raid\d+)\): ([^:]+):", out)
            if found:
                return f"{found[3]} ({found[2]} seed {found[1]})", done
            if " runs, 0 failed" not in out:
                return "no result", done
        done += step
    return None


def one(folder, name, path, old, new, runs):
    source = os.path.join(folder, "src", "engine", path)
    with open(source, encoding="utf-8") as file:
        kept = file.read()
    if old not in kept:
        print(f"not ok - {name}: its text is not in {path} any more")
        return False
    try:
        with open(source, "w", encoding="utf-8") as file:
            file.write(kept.replace(old, new, 1))
        built = build(folder)
        if built.returncode != 0:
            print(f"not ok - {name}: does not build: {built.stdout[-300:]}")
            return False
        caught = run(folder, runs)
    finally:
        with open(source, "w", encoding="utf-8") as file:
            file.write(kept)
    if caught is None:
        print(f"not ok - {name}: not caught in {runs} runs of each level")
        return False
    print(f"ok - {name}: {caught[0]}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    folder = tempfile.mkdtemp(prefix="strake-mutations-")
    caught = total = 0
    try:
        for part in ("src", "tests", "fuzz", "bench", "man", "systemd", "meson.build", "LICENSE"):
            source = os.path.join(ROOT, part)
            target = os.path.join(folder, part)
            if os.path.isdir(source):
                shutil.copytree(source, target)
            else:
                shutil.copy(source, target)
        subprocess.run(["meson", "setup", "-Dwerror=false", os.path.join(folder, "build"), folder],
                       check=True, capture_output=True)
        if build(folder).returncode != 0 or run(folder, 40) is not None:
            print("not ok - the tree as it is does not build, or fails by itself")
            return 1
        for name, path, old, new in mutations():
            if only and name not in only:
                continue
            total += 1
            caught += one(folder, name, path, old, new, args.runs)
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder)
    print(f"{caught} of {total} mutations were caught")
    return 0 if caught * 100 >= total * 95 else 1


sys.exit(main())
