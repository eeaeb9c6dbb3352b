#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the sources which a release build compiles as one go together: check_units.py BUILD

Names can clash there that never meet elsewhere, such as those of two `using namespace`. Every unit is parsed
with the flags of the preset `release`, and no code is made. What the compiler refuses is printed, exit code 1.
BUILD is a folder for this; units in which nothing has changed are not parsed again.
"""

import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def compile_or_parse(command):
    """Stands before the compiler: makes precompiled headers, and of all else empty objects."""
    made = pathlib.Path(command[command.index("-o") + 1])
    if made.suffix == ".gch":
        return subprocess.run(command).returncode
    done = subprocess.run([*command, "-fsyntax-only", "-w"])
    if done.returncode == 0:
        made.touch()
    return done.returncode


def quiet(command, root):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT
    launcher = f"{sys.executable};{pathlib.Path(__file__).resolve()};--compiler"
    quiet(["cmake", "--preset", "release", "-B", build, f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"], root)
    units = []
    for command in json.loads((build / "compile_commands.json").read_text()):
        # A single source compiles in the usual way.
        if "/Unity/" in command["file"] and pathlib.Path(command["file"]).read_text().count("#include") > 1:
            words = shlex.split(command["command"])
            units.append(words[words.index("-o") + 1])
    if not units:
        sys.exit(f"{build}: has no units")
    quiet(["cmake", "--build", build, "--parallel", "1", "--target", *units, "--", "-k", "0"], root)


if __name__ == "__main__":
    sys.exit(compile_or_parse(sys.argv[2:]) if sys.argv[1] == "--compiler" else main())
