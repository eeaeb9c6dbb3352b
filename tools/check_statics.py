#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in the compiled objects of the library that nothing of static life time ends or begins at a
time that matters to a host program; one line per violation, exit code 1 if any.

1. Nothing has a destructor that runs when the process or a thread ends: other destructors and exit
   handlers may come later and use it.
2. Nothing is made at its first use without a ForkSection: a child of fork() would wait for a thread
   that it lacks. base/immortal.hpp is the way to make it.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Random123 includes <iostream>, whose guard of the standard streams may be destroyed at any time.
STREAMS = {"base/random.cpp"}
ENDS = {"__cxa_atexit": "when the process ends", "__cxa_thread_atexit": "when a thread ends"}
GUARD = re.compile(r"guard variable for (?!.*\bpalimpsest::immortal<)(palimpsest::.*)")


def source_of(path):
    """The source of an object below .../src/palimpsest, relative to it."""
    parts = [part for part in path.parts if part != "CMakeFiles" and not part.endswith(".dir")]
    start = len(parts) - 1 - parts[::-1].index("palimpsest") + 1
    return "/".join(parts[start:])[:-len(".o")]


def violations(build):
    objects = sorted(path for path in (build / "src/palimpsest").rglob("*.o")
                     if "/cli/" not in str(path))
    if not objects:
        yield f"{build}: has no objects of the library"
    for path in objects:
        source = source_of(path)
        listing = subprocess.run(["nm", "--demangle", path], capture_output=True, text=True, check=True)
        for line in listing.stdout.splitlines():
            name = line[17:].lstrip()[2:] if len(line) > 19 else ""
            if name in ENDS and source not in STREAMS:
                yield f"{source}: has a destructor that runs {ENDS[name]}. Try immortal() or of_this_thread()"
            guarded = GUARD.search(line)
            if guarded:
                yield f"{source}: {guarded[1]} is made at its first use. Try immortal()"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the build tree")
    found = list(violations(parser.parse_args().build))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
