#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what pages say against the tree; one line per violation, exit code 1 if any.

1. A type in a code span outside of code blocks, such as `ScanFile`, is a word of the code, and so is a function
   whose name has an underscore. Types of other projects are written with their package:
   `sigpy.mri.app.SenseRecon`.
2. A source in a code span, such as `tools/check_pages.py`, is there. The path of one of a layer may begin with
   the layer's name. A name in front of a source, such as `violations` (`tools/check_pages.py`), is in it.
3. A count in a link to a page, such as [39 kinds](docs/operators.md), is the number of entries of the page.
4. The version in CITATION.cff is that of CMakeLists.txt.
5. A page of docs/ is linked from docs/index.md, or from CONTRIBUTING.md.
"""

import argparse
import pathlib
import re
import subprocess
import sys

CODE = (".cpp", ".hpp", ".py", ".pyi", ".txt", ".cmake", ".in")
FOLDERS = ("src/", "python/", "tests/", "bench/", "examples/", "tools/")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
# Not part of a path or of a dotted name, and no pattern such as `*Page*`.
TYPE = re.compile(r"(?<![\w/.*-])[A-Z]\w*[a-z]\w*(?![\w*])")
FUNCTION = re.compile(r"(?<![\w/.*<{-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w*./=-])")
SOURCE = re.compile(r"(?<![\w/.<>{}-])([\w-]+/[\w./-]*\.(?:cpp|hpp|py|md|cmake|txt))(?!\w)")
NAMED = re.compile(r"`([\w:.]+)(?:\(\))?`\s+\(`([\w./-]+\.(?:cpp|hpp|py))`")
LISTS = ("docs/index.md", "CONTRIBUTING.md")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
GENERATED = {"palimpsest/palimpsest.hpp"}
STYLES = {"CamelCase", "snake_case"}
PLACES = ("", "src", "src/palimpsest")
COUNT = re.compile(r"\[(?:about |some )?([\w-]+) [\w -]+\]\(([\w./]+\.md)\)", re.IGNORECASE)
# Entries of pages that list all of something.
ENTRIES = {"operators.md": r"^### [A-Z]\w+$", "command.md": r"^## palimpsest \w+$"}
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " \
       "seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_of(word):
    """The number that a word means, or None."""
    tens, _, ones = word.lower().partition("-")
    if word.isdigit():
        return int(word)
    if tens in ONES:
        return ONES.index(tens)
    if tens in TENS and (not ones or ones in ONES):
        return 10 * (TENS.index(tens) + 2) + (ONES.index(ones) if ones else 0)
    return None


def tracked_files(root):
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(name for name in names if (root / name).is_file())


def version_in(path, pattern):
    found = re.search(pattern, path.read_text(), re.MULTILINE) if path.is_file() else None
    return found and found[1]


def violations(root):
    root = pathlib.Path(root)
    cited = version_in(root / "CITATION.cff", r"^version: (\S+)$")
    built = version_in(root / "CMakeLists.txt", r"project\(palimpsest VERSION (\S+)")
    if cited != built:
        yield f"CITATION.cff: says version {cited} where CMakeLists.txt has {built}"
    files = tracked_files(root)
    pages = [name for name in files if name.endswith(".md") and (name.startswith("docs/") or "/" not in name)]
    lists = [root / name for name in LISTS if name in files]
    listed = {(path.parent / link).resolve() for path in lists for link in LINK.findall(path.read_text())}
    for name in pages:
        if lists and name.startswith("docs/") and name not in LISTS and (root / name).resolve() not in listed:
            yield f"{name}: no link leads to it from {' or '.join(LISTS)}"
    words = set()
    for name in files:
        if name.startswith(FOLDERS) and name.endswith(CODE):
            words |= set(re.findall(r"[A-Za-z_]\w*", (root / name).read_text(errors="replace")))
    for name in pages:
        if name == "CHANGELOG.md":  # of other versions, too
            continue
        text = (root / name).read_text()
        # Lines keep their numbers.
        prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
        for number, line in enumerate(prose.splitlines(), 1):
            for span in SPAN.findall(line):
                for word in TYPE.findall(span) + FUNCTION.findall(span):
                    if word not in words | STYLES:
                        yield f"{name}:{number}: no code has the name {word}"
                for path in SOURCE.findall(span):
                    is_there = any((root / place / path).exists() for place in PLACES)
                    if not is_there and path not in GENERATED:
                        yield f"{name}:{number}: there is no {path}"
            for word, link in COUNT.findall(line):
                page = ((root / name).parent / link).resolve()
                count = number_of(word)
                if count is None or page.name not in ENTRIES or not page.is_file():
                    continue
                there = len(re.findall(ENTRIES[page.name], page.read_text(), re.MULTILINE))
                if count != there:
                    yield f"{name}:{number}: says {word} where {link} has {there} entries"
        for pair in NAMED.finditer(prose):
            number = prose.count("\n", 0, pair.start()) + 1
            source = next((root / place / pair[2] for place in PLACES if (root / place / pair[2]).is_file()), None)
            there = set(re.findall(r"\w+", source.read_text())) if source else None
            for word in re.findall(r"\w+", pair[1]):
                if there is not None and word not in there:
                    yield f"{name}:{number}: {pair[2]} has no {word}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(violations(parser.parse_args().root))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
