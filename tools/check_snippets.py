#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of README.md, CONTRIBUTING.md and docs/, and follows links between files; one
paragraph per failure.

A block of C++ that contains `int main` is compiled against the library of the build tree and run;
when a `text` block follows it, that is what it must print, where a line `...` stands for any lines
and `...` within a line for any characters. Every other block of code must be a literal excerpt of a
file in examples/, tests/ or src/, except for indentation, but those of docs/operators.md, which are cases
of tests/linop. Blocks of Python are left to
python/tests/docs. A `sh` block marked `<!-- run -->` in the
line above is run by `sh -eu` in an empty directory with the commands of the build tree at hand; it
too may be followed by its output. `<!-- run after the above -->` runs it in the directory of the `sh`
block before it on the page, as that one left it. One that cannot be run by a test says why:
`<!-- not run: it takes minutes -->`.

Of tables whose first columns are `task` and `C++` the cells of that column, in order, are one program; the
cells of the column `command` are one `sh` block. The column `Python` is left to python/tests/docs.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- (run|run after the above|not run: [^\n]+) -->\s*\Z")
SHEET = re.compile(r"^\| task \| C\+\+ \|.*\n\|[-| ]+\n(?:\|.*\n)+", re.MULTILINE)
BAR = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
TIMEOUT_S = 300
HEADER = "palimpsest/palimpsest.hpp"
PAGE_OF_CASES = "docs/operators.md"


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    marker: str = ""
    output: str | None = None

    def where(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """The blocks of a page; a `text` block right after another one becomes its output."""
    found, last_end = [], 0
    for match in FENCE.finditer(text):
        between = text[last_end:match.start()]
        marker = MARKER.search(between)
        block = Block(page, text.count("\n", 0, match.start()) + 1, match[2], match[3],
                      marker[1] if marker else "")
        last_end = match.end()
        if block.language == "text":
            if found and found[-1].output is None and not re.search(r"^#", between, re.MULTILINE):
                found[-1].output = block.text
            continue
        found.append(block)
    return found


def runs_of(blocks):
    """Lists of blocks that share a directory: one each, but for `sh` blocks that go on after others."""
    runs = []
    for block in blocks:
        above = next((run for run in reversed(runs) if run[0].page == block.page and run[0].marker == "run"), None)
        if block.marker == "run after the above" and above:
            above.append(block)
        else:
            runs.append([block])
    return runs


def column_of(sheets, name):
    """The code of a column of all tables, a line for each cell."""
    lines = []
    for sheet in sheets:
        head, _, *rows = ([cell.strip() for cell in BAR.split(row)[1:-1]] for row in sheet.splitlines())
        if name in head:
            cells = [row[head.index(name)] for row in rows]
            lines += [code.replace("\\|", "|") for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    return "".join(f"{line}\n" for line in lines)


def blocks_of_sheets(page, text):
    """The programs that the tables of a page show, a cell for each line."""
    sheets = SHEET.findall(text)
    if not sheets:
        return []
    line = text.count("\n", 0, text.index(sheets[0])) + 1
    program = f"#include <{HEADER}>\nusing namespace palimpsest;\nint main() {{\n{column_of(sheets, 'C++')}}}\n"
    return [Block(page, line, "cpp", program), Block(page, line, "sh", column_of(sheets, "command"), "run")]


def dead_links(page, text):
    """One line for each link to a file that is not there."""
    # Code may look like a link; spaces replace it, so that line numbers stay the same.
    prose = FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    for match in LINK.finditer(prose):
        if not (page.parent / match[1]).exists():
            yield text.count("\n", 0, match.start()) + 1, match[1]


def output_matches(expected, actual):
    """Whether the output is as expected, with `...` as a wildcard."""
    lines = []
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*")
        else:
            parts = [re.escape(part) for part in line.rstrip().split("...")]
            lines.append(r"[^\n]*?".join(parts) + r"[ \t]*\n")
    return re.fullmatch("".join(lines), actual.rstrip() + "\n") is not None


class Runner:
    def __init__(self, arguments):
        self.root = arguments.root
        self.build_dir = arguments.build_dir.resolve()
        self.compiler = arguments.compiler
        # Programs read the header of everything once, precompiled.
        self.headers = tempfile.TemporaryDirectory()
        self.everything = pathlib.Path(self.headers.name) / "everything.hpp"
        self.compile = [self.compiler, "-std=c++20", *arguments.flags.split(), f"-I{self.root / 'src'}",
                        f"-I{self.build_dir / 'include'}"]
        self.sources = None

    def precompile(self):
        """Precompiles the header of everything, if that is possible: programs compile without it too."""
        self.everything.write_text(f'#include "{HEADER}"\n')
        subprocess.run([*self.compile, "-x", "c++-header", self.everything, "-o", f"{self.everything}.gch"],
                       capture_output=True)

    def check_all(self, blocks):
        """Pairs of a block and what is wrong with it, or None, for blocks that share a directory."""
        if blocks[0].marker == "run after the above":
            return [(blocks[0], "there is no block above it that runs")]
        with tempfile.TemporaryDirectory() as folder:
            return [(block, self.check(block, folder)) for block in blocks]

    def check(self, block, folder):
        if block.language == "cpp" and re.search(r"\bint main\b", block.text):
            return self.check_program(block, folder)
        if block.language == "sh":
            return self.check_shell(block, folder)
        if block.language == "python":
            return None
        if block.language == "cpp" and block.page == PAGE_OF_CASES:
            return None
        if block.language == "":
            return "the block names no language; write ```cpp, ```sh, ```text, ..."
        return self.check_excerpt(block)

    def run(self, block, command, folder):
        environment = {**os.environ, "PATH": f"{self.build_dir}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        if block.output is not None and not output_matches(block.output, done.stdout):
            return f"it printed\n{done.stdout}and the page says\n{block.output}"
        return None

    def check_program(self, block, folder):
        source = pathlib.Path(folder) / "snippet.cpp"
        source.write_text(block.text)
        includes_all = re.search(rf"^#include [<\"]{HEADER}[>\"]", block.text, re.MULTILINE)
        # Precompiled headers come first.
        first = ["-include", self.everything] if includes_all else []
        command = [*self.compile, *first, source, "-o", source.with_suffix(""), f"-L{self.build_dir}",
                   "-lpalimpsest", f"-Wl,-rpath,{self.build_dir}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            return f"it does not compile\n{done.stderr}"
        return self.run(block, [source.with_suffix("")], folder)

    def check_shell(self, block, folder):
        if block.marker.startswith("not run"):
            return None
        if not block.marker.startswith("run"):
            return "mark it with <!-- run --> or <!-- not run: reason --> in the line above"
        return self.run(block, ["sh", "-euc", block.text], folder)

    def check_excerpt(self, block):
        if self.sources is None:
            suffixes = {".cpp", ".hpp", ".txt", ".json", ".py"}
            self.sources = [self.squeezed(path.read_text(errors="replace"))
                            for folder in ("examples", "tests", "src")
                            for path in (self.root / folder).rglob("*") if path.suffix in suffixes]
        wanted = self.squeezed(block.text)
        if any(wanted in source for source in self.sources):
            return None
        return "it is no excerpt of a file in examples/, tests/ or src/"

    @staticmethod
    def squeezed(text):
        lines = (line.strip() for line in text.splitlines())
        return "\n" + "\n".join(line for line in lines if line) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="for the compiler and the linker")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    pages = [page for page in (arguments.root / "README.md", arguments.root / "CONTRIBUTING.md")
             if page.exists()] + sorted((arguments.root / "docs").rglob("*.md"))
    blocks = [block for page in pages
              for blocks in (blocks_of, blocks_of_sheets)
              for block in blocks(str(page.relative_to(arguments.root)), page.read_text())]
    runner = Runner(arguments)
    runner.precompile()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        found = [pair for pairs in pool.map(runner.check_all, runs_of(blocks)) for pair in pairs]
    failures = [(block, problem) for block, problem in found if problem]
    for block, problem in failures:
        print(f"{block.where()}: {problem.rstrip()}")
    dead = [(page, line, target) for page in pages
            for line, target in dead_links(page, page.read_text())]
    for page, line, target in dead:
        print(f"{page.relative_to(arguments.root)}:{line}: a link to '{target}', which does not exist")
    n_wrong = len(failures) + len(dead)
    print(f"{len(blocks)} blocks on {len(pages)} pages, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
