#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the examples of docs/operators.md as cases: a section `### Name` becomes TEST(OperatorExample, Name).

Programs of their own, with `int main`, are left to tools/check_snippets.py.
"""

import pathlib
import re
import sys

SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)


def cases(page):
    for name, section in SECTION.findall(page):
        blocks = [block for block in BLOCK.findall(section) if "int main" not in block]
        if blocks:
            yield f"TEST(OperatorExample, {name}) {{\n{''.join(blocks)}}}\n"


def main():
    page, out = map(pathlib.Path, sys.argv[1:])
    out.write_text("\n".join(cases(page.read_text())))


if __name__ == "__main__":
    main()
