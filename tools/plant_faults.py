#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in the sources of a layer, one at a time, and asks its tests to find them.

    tools/plant_faults.py --layer memory              100 faults
    tools/plant_faults.py --layer tensor --list       says which, and runs nothing
    tools/plant_faults.py --layer memory --only 17    one of them again
    tools/plant_faults.py --layer memory --here       in this tree and its build/dev, not in a copy

A fault is one small change: a condition negated, a comparison or a sum turned into its neighbour, a
number off by one, a statement left out, two arguments exchanged. The faults are drawn with a fixed
seed from all that the text of the sources allows; what does not compile is no fault, and the next one
takes its place. They are planted in a copy of the working tree, under build/faults: most of them in one
build, where the environment chooses one (fault_switches.py), the others in a build each. The test
programs of the layer run until one fails. A fault that no test notices survives; those that change
nothing that anybody could observe are listed in equivalent_faults.txt, with the reason.

The copy-on-write protocol itself, memory/cow_protocol.hpp, is left to the mutants of tests/model.
"""

import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import fault_switches

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "equivalent_faults.txt"

# Test programs of a layer, by target and path. A fault that one of them misses is passed to the
# next.
PROGRAMS = {
    "memory": [("test_memory", "tests/memory/test_memory"),
               ("test_tensor", "tests/tensor/test_tensor")],
    "tensor": [("test_tensor", "tests/tensor/test_tensor")],
    "compile": [("test_plan", "tests/plan/test_plan"), ("test_run", "tests/run/test_run"),
                ("test_compile", "tests/compile/test_compile"),
                ("test_inspect", "tests/inspect/test_inspect"),
                ("test_compile_given_back", "tests/compile/test_compile_given_back"),
                ("test_plan_contract", "tests/contract/test_plan_contract")],
}
# Source folders of layers with several folders.
FOLDERS = {"compile": ["plan", "run", "inspect", "compile"]}
LEFT_OUT = {"memory/cow_protocol.hpp"}
BUILD_TIMEOUT_S = 1800
MEMORY_LIMIT_BYTES = 24 << 30  # of addresses: a fault may allocate without end

NEIGHBOURS = {
    " < ": [" <= "], " <= ": [" < "], " > ": [" >= "], " >= ": [" > "],
    " == ": [" != "], " != ": [" == "],
    " + ": [" - "], " - ": [" + "], " * ": [" / "], " / ": [" * "], " % ": [" / "],
    " += ": [" -= "], " -= ": [" += "],
    " && ": [" || "], " || ": [" && "],
    "++": ["--"], "--": ["++"],
    "std::min": ["std::max"], "std::max": ["std::min"],
    "return true;": ["return false;"], "return false;": ["return true;"],
}


class Fault:
    def __init__(self, path, line, column, old, new, kind, text):
        self.path, self.line, self.column = path, line, column
        self.old, self.new, self.kind, self.text = old, new, kind, text

    def __str__(self):
        shown = self.text[:self.column] + f"[{self.old} -> {self.new}]" + \
            self.text[self.column + len(self.old):]
        return f"{self.path}:{self.line + 1}: {self.kind}: {shown.strip()}"

    def key(self):
        """What it is, wherever the line stands."""
        return str(self).split(": ", 1)[1]


def blanked(text):
    """The text with comments, strings, characters and directives as blanks, lines and columns kept."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^#(?:[^\n]*\\\n)*[^\n]*'
    # A digit separator does not begin a character literal.
    text = re.sub(r"(?<=\d)'(?=\d)", "_", text)
    return re.sub(pattern, blank, text, flags=re.S | re.M)


def condition_spans(line):
    """(start, end) of the conditions of ifs and whiles that stand on one line."""
    for found in re.finditer(r"\b(?:if|while) (?:constexpr )?\(", line):
        if "constexpr" in found.group():
            continue
        depth = 1
        for at in range(found.end(), len(line)):
            depth += {"(": 1, ")": -1}.get(line[at], 0)
            if depth == 0:
                if ";" not in line[found.end():at] and " = " not in line[found.end():at]:
                    yield found.end(), at
                break


def is_code(line):
    """May a fault be planted there? Not in declarations, messages, and what only sanitizers see."""
    stripped = line.strip()
    if not stripped or re.search(r"throw\b| operator\b|= default|= delete|ASAN_|assert\(", line):
        return False
    if re.match(r"[\w:<>&* ]+\((?:(?:const )?[\w:<>]+[&*]* \w+(?:, |\)))+(?: const)?;", stripped):
        return False
    return not re.match(
        r"(template|using|namespace|friend|class|struct|enum|extern|typedef|PALIMPSEST_\w+)\b",
        stripped)


def changes_of(line):
    """(column, old, new, kind) of each fault within one line of blanked code."""
    for start, end in condition_spans(line):
        yield start, line[start:end], f"!({line[start:end]})", "negated condition"
    for old, others in NEIGHBOURS.items():
        for found in re.finditer(re.escape(old), line):
            before, after = line[:found.start()], line[found.end():]
            if old.strip() in ("<", ">") and re.search(r"\btemplate\b", line):
                continue
            if old == " * " and re.search(r"(const|[A-Za-z_>])$", before) and after[:1] == "=":
                continue
            for new in others:
                yield found.start(), old, new, "neighbouring operator"
    for found in re.finditer(r"(?<![\w.\[{<'])(\d)(?![\w.'}>])", line):
        if re.search(r"\bcase |alignas|std::array<", line):
            continue
        yield found.start(), found.group(), str(int(found.group()) + 1), "off by one"
    stripped = line.strip()
    lead = len(line) - len(line.lstrip())
    if re.fullmatch(r"(?:[\w:>.*&\[\]-]+(?:\([^;]*\))?(?: [-+*/|&]?= [^;]+|\([^;]*\))|\+\+[\w.>\[\]-]+"
                    r"|break|continue);", stripped) and not stripped.startswith("return") \
            and not re.match(r"(const|auto|static|throw|delete|new|co_)\b", stripped):
        yield lead, stripped, ";", "removed statement"
    for found in re.finditer(r"\w\(([\w.>_-]+), ([\w.>_-]+)\)", line):
        a, b = found.group(1), found.group(2)
        # min and max do not depend on the order of their arguments.
        if a != b and not re.search(r"\bstd::(min|max)$", line[:found.start() + 1]):
            yield found.start(1), f"{a}, {b}", f"{b}, {a}", "exchanged arguments"


def faults_of(layer):
    faults = []
    root = ROOT / "src" / "palimpsest"
    for path in sorted(p for name in FOLDERS.get(layer, [layer]) for p in (root / name).rglob("*")):
        relative = str(path.relative_to(ROOT / "src" / "palimpsest"))
        if path.suffix not in (".cpp", ".hpp") or relative in LEFT_OUT:
            continue
        text = path.read_text(encoding="utf-8")
        code = blanked(text).split("\n")
        lines = text.split("\n")
        statement_start = True
        for number, line in enumerate(code):
            if is_code(line):
                for column, old, new, kind in changes_of(line):
                    # A continuation line is not a statement, and a concatenation of texts is not a
                    # sum.
                    if kind == "removed statement" and not statement_start:
                        continue
                    if old in (" + ", " - ") and '"' in lines[number]:
                        continue
                    as_written = lines[number][column:column + len(old)]
                    new = f"!({as_written})" if kind == "negated condition" else new
                    faults.append(Fault(f"src/palimpsest/{relative}", number, column, as_written,
                                        new, kind, lines[number]))
            if line.strip():
                end = line.rstrip()
                statement_start = end[-1] in ";{}:)" and not end.endswith("))")
    return faults


def drawn(layer, seed):
    """All faults in the order in which they are taken, one for each line."""
    faults = faults_of(layer)
    random.Random(seed).shuffle(faults)
    seen, order = set(), []
    for fault in faults:
        if (fault.path, fault.line) not in seen:
            seen.add((fault.path, fault.line))
            order.append(fault)
    return order


def equivalents():
    known = {}
    if EQUIVALENT.exists():
        key = None
        for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
            if line.startswith("    "):
                known[key] = (known[key] + " " + line.strip()).strip()
            elif line and not line.startswith("#"):
                key = line
                known[key] = ""
    return known


class Workshop:
    """A copy of the working tree, or this one, and its build tree."""

    def __init__(self, jobs, is_here):
        self.base = ROOT / "build" / "faults"
        self.source, self.build = self.base / "source", self.base / "build"
        self.jobs, self.is_here = jobs, is_here
        self.originals = {}
        if is_here:
            self.source, self.build = ROOT, ROOT / "build" / "dev"

    def prepare(self):
        if self.is_here:
            if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode:
                sys.exit("plant_faults.py: --here needs a tree without changes")
            return
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, text=True, check=True).stdout.splitlines()
        wanted = set(listed)
        if self.source.exists():
            for path in list(self.source.rglob("*")):
                if path.is_file() and str(path.relative_to(self.source)) not in wanted:
                    path.unlink()
        for name in listed:
            origin, target = ROOT / name, self.source / name
            if not origin.is_file():
                continue
            # Equal files keep their time stamps, so that they are not built again.
            if target.exists() and target.read_bytes() == origin.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, target)
        if not (self.build / "build.ninja").exists():
            self.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                      "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1"], check=True)

    def run(self, command, check=False, timeout=BUILD_TIMEOUT_S):
        return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              check=check, timeout=timeout)

    def builds(self, target):
        return self.run(["ninja", "-C", self.build, f"-j{self.jobs}", target]).returncode == 0

    def compiler_errors(self, targets):
        """{(path in the tree, line)}, empty if all is built."""
        done = self.run(["ninja", "-C", self.build, f"-j{self.jobs}", "-k0", *targets], timeout=None)
        found = re.findall(rf"^{re.escape(str(self.source))}/(\S+?):(\d+):(?:\d+:)? error:",
                           done.stdout, re.M)
        if done.returncode != 0 and not found:
            sys.exit("plant_faults.py: the build fails without a place\n" + done.stdout[-4000:])
        return {(path, int(line) - 1) for path, line in found}

    def failing_test(self, program, timeout_s, number=-1):
        """The name of the first test that fails, None if all pass."""
        environment = dict(os.environ, PLANTED_FAULT=str(number),
                           TMPDIR=str(self.base / "tmp"))
        (self.base / "tmp").mkdir(parents=True, exist_ok=True)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        output = self.base / "output.txt"
        with open(output, "w", encoding="utf-8") as file:
            try:
                code = subprocess.run([self.build / program, "--gtest_fail_fast"], stdout=file,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      timeout=timeout_s, env=environment, preexec_fn=limit,
                                      cwd=self.base / "tmp", check=False).returncode
            except subprocess.TimeoutExpired:
                code = "no end"
        if code == 0:
            return None
        text = output.read_text(errors="replace")
        failed = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", text, re.M)
        started = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
        return (failed or started[-1:] or ["start"])[0] + (f" ({code})" if code != 1 else "")

    def write(self, path, text):
        """Faults in a source."""
        self.originals.setdefault(path, (self.source / path).read_text(encoding="utf-8"))
        (self.source / path).write_text(text, encoding="utf-8")

    def plant(self, fault):
        lines = (self.source / fault.path).read_text(encoding="utf-8").split("\n")
        text = lines[fault.line]
        assert text[fault.column:fault.column + len(fault.old)] == fault.old
        lines[fault.line] = text[:fault.column] + fault.new + text[fault.column + len(fault.old):]
        self.write(fault.path, "\n".join(lines))

    def mend(self):
        for path, text in self.originals.items():
            (self.source / path).write_text(text, encoding="utf-8")
        self.originals = {}
        self.header.unlink(missing_ok=True)

    @property
    def header(self):
        return self.source / "src" / "palimpsest" / "planted_fault.hpp"

    def plant_switched(self, order, numbers, targets):
        """Plants those that compile beside the right code, and builds; returns their numbers."""
        self.header.write_text(fault_switches.HEADER, encoding="utf-8")
        left = list(numbers)
        while True:
            places = {}
            for path in sorted({order[n].path for n in numbers}):
                text = self.originals.get(path) or (self.source / path).read_text(encoding="utf-8")
                mine = [(n, order[n]) for n in left if order[n].path == path]
                changed, places[path] = fault_switches.switched(text, blanked(text), mine)
                if not places[path]:
                    changed = text
                if changed != (self.source / path).read_text(encoding="utf-8"):
                    self.write(path, changed)
            left = [n for of_path in places.values() for n, _, _ in of_path]
            errors = self.compiler_errors(targets)
            if not errors:
                return set(left)
            bad = {n for path, line in errors for n, first, last in places.get(path, [])
                   if first <= line <= last}
            # An error in another file: attributed to the files with faults.
            bad = bad or {n for path, _ in errors for n, _, _ in places.get(path, [])}
            if not bad:
                sys.exit(f"plant_faults.py: errors where there is no fault: {sorted(errors)[:5]}")
            left = [n for n in left if n not in bad]


class Count:
    """What became of the faults."""

    def __init__(self, layer):
        self.layer, self.known = layer, equivalents()
        self.survivors, self.killed, self.explained = [], 0, 0

    @property
    def planted(self):
        return self.killed + self.explained + len(self.survivors)

    def add(self, number, fault, killer):
        if killer:
            self.killed += 1
            verdict = f"killed by {killer}"
        elif fault.key() in self.known:
            self.explained += 1
            verdict = f"equivalent: {self.known[fault.key()]}"
        else:
            self.survivors.append(fault)
            verdict = "SURVIVES"
        print(f"{number} {fault}\n    {verdict}", flush=True)

    def print_sum(self):
        print(f"{self.planted} faults in {self.layer}: {self.killed} killed, {self.explained} "
              f"equivalent, {len(self.survivors)} survive")
        for fault in self.survivors:
            print(f"  {fault}")


def test_all(workshop, programs, order, wanted, count, n_wanted):
    targets = [target for target, _ in programs]
    timeouts = []
    for target, program in programs:
        if not workshop.builds(target):
            sys.exit(f"plant_faults.py: {target} cannot be built without a fault")
        start = time.monotonic()
        failure = workshop.failing_test(program, 3600)
        if failure:
            sys.exit(f"plant_faults.py: {failure} fails without a fault")
        timeouts.append(30 + 5 * (time.monotonic() - start))

    def killer_of(number):
        # The tests of the fault's own folder are the most likely to find it.
        folder = order[number].path.split("/")[2] if number >= 0 else ""
        for (_, program), timeout_s in sorted(zip(programs, timeouts),
                                              key=lambda p: f"/{folder}/" not in p[0][1]):
            killer = workshop.failing_test(program, timeout_s, number)
            if killer:
                return killer
        return None

    try:
        switched = workshop.plant_switched(order, wanted[:n_wanted], targets)
        print(f"{len(switched)} of {min(n_wanted, len(wanted))} faults in one build", flush=True)
        failure = killer_of(-1)
        if failure:
            sys.exit(f"plant_faults.py: {failure} fails with no fault chosen")
        for number in sorted(switched):
            count.add(number, order[number], killer_of(number))
        workshop.mend()
        for number in wanted:
            if count.planted == n_wanted:
                break
            if number in switched:
                continue
            workshop.plant(order[number])
            killer, compiles = None, True
            for (target, program), timeout_s in zip(programs, timeouts):
                compiles = compiles and workshop.builds(target)
                killer = killer or (compiles and workshop.failing_test(program, timeout_s))
                if killer or not compiles:
                    break
            if compiles:
                count.add(number, order[number], killer)
            workshop.mend()
    finally:
        workshop.mend()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layer", choices=sorted(PROGRAMS), required=True)
    parser.add_argument("--count", type=int, default=100, help="number of faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, action="append", help="number of a fault in the order")
    parser.add_argument("--list", action="store_true", help="print the order, run nothing")
    parser.add_argument("--here", action="store_true", help="plant in this tree, build in build/dev")
    options = parser.parse_args()

    order = drawn(options.layer, options.seed)
    if options.list:
        for number, fault in enumerate(order):
            print(number, fault)
        return 0
    wanted = options.only if options.only else list(range(len(order)))
    workshop = Workshop(options.jobs, options.here)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("plant_faults.py: stopped"))  # mends first
    workshop.prepare()
    count = Count(options.layer)
    test_all(workshop, PROGRAMS[options.layer], order, wanted, count,
             min(options.count, len(wanted)))
    count.print_sum()
    return 1 if count.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
