# SPDX-License-Identifier: Apache-2.0
"""A header as Doxygen is to read it: the aligned sections of comments become paragraphs of their own."""

import re
import sys

SECTIONS = "Math|Shapes|Units|DTypes|Aliases|Errors|Cost|Source|Memory|Stops|Status|Objective|Threads"


def main():
    text = open(sys.argv[1]).read()
    lines = []
    for line in text.split("\n"):
        comment = re.match(r"(\s*///<?)(.*)", line)
        if comment:
            words = re.sub(r"([<>&#@%\\])", r"\\\1", comment[2])
            words = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", words)
            section = re.match(rf" ({SECTIONS})\s+(.*)", words)
            line = comment[1] + (f" \\par {section[1]}\n{comment[1]} {section[2]}" if section else words)
        lines.append(line)
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
