#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the tree that no compiler checks; one line per violation, exit code 1 if any.

1. A layer includes only itself and the layers that src/palimpsest/CMakeLists.txt lets it use.
2. A public header includes only the standard library and public headers. Internal are those that
   say `// Internal` in one of their first three lines.
3. The command, the examples and the tests across layers include public headers only; a unit test
   may also include the internal headers of its own layer.
4. A library with an adapter (BLAS, HDF5, PNG, ...) is included from that one file.
5. Every file names its licence in an SPDX line; every header has `#pragma once`, or if its name ends
   in `-inl.hpp` a guard that lets it in once per instruction set; no C++ file has more than 800 lines,
   no line more than 100 columns (literals between R"( and )" may).
6. Locks are those of base/fork.hpp and base/call_lock.hpp, which a child of fork() finds free.
7. No folder of src/palimpsest has more than 40 files.
8. A type outside unnamed namespaces is defined once in src/palimpsest: of two definitions with one
   name, the linker keeps functions of only one.
9. Texts of the library name no option of the command such as `--maps`, which callers of C++ and Python
   do not have. They name a field, as `ScanOptions.slice`; cli/option_words.cpp has a row for each.
10. A variable of the environment that src/palimpsest reads is in the table of docs/howto/embed.md.
    `palimpsest doctor` reads each but the two that are no settings.
11. palimpsest/ops/ops.hpp includes every public header of the ops, but for those that build none.
12. A comment of C++ begins with its noun or verb, not with a word such as That, As or One, which refers
    to something that the reader must look for.
13. Every source tests/**/*_test.cpp is named in the CMakeLists.txt of its folder, or found by its GLOB.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Folders of src/palimpsest that use public headers only.
CLIENTS = ["cli", "python"]
# Folders of tests that test layers of another name.
TESTS_OF = {"model": {"memory"}, "samples": {"ops"}, "contract": {"device"}, "support": {"base", "device", "tensor"}, "lower": {"lower", "device", "ops"}, "inspect": {"inspect", "run", "compile"}}
# Headers that only one file of src may include, its adapter.
ADAPTED = {
    "CBLAS": r"(openblas/)?cblas\.h",
    "LAPACKE": r"lapacke\.h",
    "HDF5": r"hdf5\.h",
    "libpng": r"png\.h",
    "pugixml": r"pugixml\.hpp",
    "xxHash": r"xxhash\.h",
    "Random123": r"Random123/.*",
}
# Vectors are for loops: all of these layers may use them.
OF_LAYER = {"Highway": (("copy", "kernels"), r"hwy/.*")}
# Locks that stay locked in a child of fork() if a thread of the parent holds them.
LOCKS = re.compile(r"\bstd::((?:shared_|recursive_|timed_)*mutex|condition_variable\w*)\b")
LOCK_ADAPTERS = {"src/palimpsest/base/fork.hpp", "src/palimpsest/base/fork.cpp",
                 "src/palimpsest/memory/parking.cpp"}
UMBRELLA = "palimpsest/palimpsest.hpp"  # made by the build
# Headers above the layers, besides the umbrella, that include some of their public headers.
SHORTCUTS = {"src/palimpsest/testing.hpp"}
# Options of the command, and fields of the library, in texts; the file with the words for the latter.
# The field in wrong_option("field", ..) is one of ScanReconstructionOptions.
FLAG = re.compile(r'"[^"\n]*?(?<![\w-])(--[a-z][a-z-]+)')
FIELD = re.compile(r'"[^"\n]*?\b((?:Scan|ScanReconstruction)Options\.\w+)|wrong_option\("(\w+)"')
WORDS = "src/palimpsest/cli/option_words.cpp"
# The first words of a comment that keep its noun back.
VAGUE = re.compile(r"(?:^|.*\s)//[/<]* (That|Those|As|One|The one|The same of|They|How|What|Where|Whether|Which)\b")
READS_ENVIRONMENT = re.compile(r"\bgetenv\(")
VARIABLE = re.compile(r'"(HOME|[A-Z]+_[A-Z_]*[A-Z])"')
LISTED_VARIABLES, SHOWN_VARIABLES = "docs/howto/embed.md", "src/palimpsest/cli/doctor.cpp"
NO_SETTINGS = {"HOME", "PALIMPSEST_STUBS"}
# A header that includes every public header of its folder, but for these.
COLLECTIONS = {"src/palimpsest/ops/ops.hpp": {"ops/registry.hpp", "ops/loop/measured_op.hpp"}}
LONGEST_FILE = 800
LONGEST_LINE = 100
FULLEST_FOLDER = 40
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
NAMESPACE = re.compile(r"^(?:inline )?namespace (?:[A-Z_]+ )?([\w:]*) ?\{|^(\})  // namespace", re.MULTILINE)
DEFINITION = re.compile(
    r"^(?:(?:struct|class|enum class|union)(?: [A-Z_]+| alignas\(.*?\))? (\w+)(?: final)?(?: :[^;{]*)?(?: \{.*)?"
    r"|using (\w+) =.*)$", re.MULTILINE)
BINARY = {".png", ".npy", ".h5", ".cfl", ".nii", ".gz"}


def declared_layers(root):
    """The layers of src/palimpsest/CMakeLists.txt in their order, each with those that it uses."""
    path = root / "src/palimpsest/CMakeLists.txt"
    text = re.sub(r"#.*", "", path.read_text())
    layers = {}
    for call in re.findall(r"palimpsest_layer\(([^)]*)\)", text):
        name, *words = re.sub(r"\bLEVEL \w\b", "", call).split()
        words = words[:words.index("LIBRARIES")] if "LIBRARIES" in words else words
        layers[name] = words[1:] if words[:1] == ["USES"] else []
    return layers


def tracked_files(root):
    """Files under version control that exist, relative to root; all files where there is no git."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not name.startswith(("build/", ".git/"))]
    return sorted(name for name in names if (root / name).is_file())


class Tree:
    """The files of a checkout and what they declare."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = tracked_files(self.root)
        self.layers = declared_layers(self.root)
        self.public = {
            name.removeprefix("src/"): layer_of(name.removeprefix("src/"))
            for name in self.files
            if name.startswith("src/palimpsest/") and name.endswith(".hpp")
            and layer_of(name.removeprefix("src/")) in self.layers and not self.is_internal(name)
        }

    def is_internal(self, name):
        return any(line.startswith("// Internal") for line in self.text(name).splitlines()[:3])

    def closure(self, layer):
        """The layer and all that it may use."""
        found = {layer}
        for used in self.layers[layer]:
            found |= self.closure(used)
        return found

    def cpp_files(self, *folders):
        return [name for name in self.files
                if name.endswith((".hpp", ".cpp")) and name.startswith(folders)]

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def includes(self, name):
        """Pairs of (line number, kind, included path)."""
        text = self.text(name)
        return [(text.count("\n", 0, match.start()) + 1, match[1], match[2])
                for match in INCLUDE.finditer(text)]


def is_own(path):
    return path.startswith("palimpsest/")


def layer_of(include):
    return include.split("/")[1]


def check_layer_includes(tree):
    for name in tree.cpp_files("src/palimpsest/"):
        layer = name.split("/")[2]
        if layer not in tree.layers:
            continue
        allowed = tree.closure(layer)
        for line, kind, path in tree.includes(name):
            if kind == '"' and not is_own(path):
                yield f"{name}:{line}: '{path}' is not written from the root, as palimpsest/{layer}/..."
            elif is_own(path) and layer_of(path) not in allowed:
                uses = ", ".join(sorted(allowed))
                yield f"{name}:{line}: {layer} may not include '{path}'; it may use {uses}"
    earlier = set()
    for layer, uses in tree.layers.items():
        for used in sorted(set(uses) - earlier):
            yield f"src/palimpsest/CMakeLists.txt: {layer} may not use {used}, which does not stand above it"
        earlier.add(layer)


def check_public_headers(tree):
    for header in tree.public:
        name = "src/" + header
        for line, kind, path in tree.includes(name):
            if is_own(path):
                if path not in tree.public:
                    yield f"{name}:{line}: a public header includes '{path}', which is internal"
            elif kind == '"' or not re.fullmatch(r"[a-z0-9_]+", path):
                yield f"{name}:{line}: a public header includes '{path}' of another project"


def check_shortcuts(tree):
    for shortcut in sorted(SHORTCUTS & set(tree.files)):
        for line, _, path in tree.includes(shortcut):
            if path not in tree.public:
                yield f"{shortcut}:{line}: '{path}' is no public header"


def check_collections(tree):
    for collection, left_out in COLLECTIONS.items():
        if collection not in tree.files:
            continue
        own = collection.removeprefix("src/")
        named = {path for _, _, path in tree.includes(collection)}
        named |= {own, *("palimpsest/" + name for name in left_out)}
        folder = own.rpartition("/")[0] + "/"
        for header in sorted(set(tree.public) - named):
            if header.startswith(folder):
                yield f"{collection}: does not include '{header}'"


def check_folders(tree):
    counts = {}
    for name in tree.cpp_files("src/palimpsest/"):
        folder = name.rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + 1
    for folder, count in sorted(counts.items()):
        if count > FULLEST_FOLDER:
            yield f"{folder}: {count} files, expected at most {FULLEST_FOLDER}; make folders in it"


def check_types(tree):
    first = {}
    for name in tree.cpp_files("src/palimpsest/"):
        namespaces, text = [], tree.text(name)
        places = sorted([*NAMESPACE.finditer(text), *DEFINITION.finditer(text)], key=lambda m: m.start())
        for match in places:
            if match.re is NAMESPACE:
                namespaces = namespaces[:-1] if match[2] else [*namespaces, match[1]]
                continue
            if not namespaces or "" in namespaces:
                continue
            defined = "::".join([*namespaces, match[1] or match[2]])
            place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            if defined in first:
                yield f"{place}: {defined} is defined in {first[defined]} too; give one of them another name"
            first.setdefault(defined, place)


def check_clients(tree):
    for client in CLIENTS:
        yield from check_public_only(tree, f"src/palimpsest/{client}/", own={client})
    yield from check_public_only(tree, "examples/")
    for name in tree.cpp_files("tests/"):
        folder = name.split("/")[1]
        yield from check_public_only(tree, name, own=TESTS_OF.get(folder, {folder}))


def check_public_only(tree, where, own=frozenset()):
    for name in tree.cpp_files(where):
        for line, _, path in tree.includes(name):
            if not is_own(path) or path in tree.public or path == UMBRELLA:
                continue
            if "src/" + path not in SHORTCUTS and layer_of(path) not in own:
                yield f"{name}:{line}: '{path}' is internal; only public headers may be used here"


def check_adapters(tree):
    users = {library: [] for library in ADAPTED}
    for name in tree.cpp_files("src/"):
        for line, kind, path in tree.includes(name):
            for library, pattern in ADAPTED.items():
                if kind == "<" and re.fullmatch(pattern, path):
                    users[library].append((name, line))
            for library, (layers, pattern) in OF_LAYER.items():
                if kind == "<" and re.fullmatch(pattern, path) and name.split("/")[2] not in layers:
                    yield f"{name}:{line}: {library} is for {' and '.join(layers)} of src/palimpsest only"
    for library, places in users.items():
        files = sorted({name for name, _ in places})
        if len(files) > 1:
            yield f"{library} is included from {len(files)} files, expected one: {', '.join(files)}"


def check_locks(tree):
    for name in tree.cpp_files("src/palimpsest/"):
        if name in LOCK_ADAPTERS or name.split("/")[2] in CLIENTS:
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            found = LOCKS.search(line.split("//")[0])
            if found:
                yield f"{name}:{number}: std::{found[1]} is not safe with fork(). Try Mutex or CallLock"


def check_files(tree):
    for name in tree.files:
        path = pathlib.Path(name)
        if path.suffix in BINARY or name == "LICENSE":
            continue
        text = tree.text(name)
        # Python stubs begin with imports.
        top = text if path.suffix == ".pyi" else "\n".join(text.splitlines()[:12])
        if "SPDX-License-Identifier: Apache-2.0" not in top:
            yield f"{name}: has no line 'SPDX-License-Identifier: Apache-2.0' near its top"
        if path.name.endswith("-inl.hpp"):
            if "HWY_TARGET_TOGGLE" not in text:
                yield f"{name}: a header for each instruction set without a guard by 'HWY_TARGET_TOGGLE'"
        elif path.suffix == ".hpp" and "#pragma once" not in text:
            yield f"{name}: a header without '#pragma once'"
        if path.suffix in (".hpp", ".cpp") and text.count("\n") > LONGEST_FILE:
            yield f"{name}: {text.count(chr(10))} lines, expected at most {LONGEST_FILE}; split it"
        if path.suffix in (".hpp", ".cpp"):
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > LONGEST_LINE and 'R"' not in line:
                    yield f"{name}:{number}: {len(line)} columns, expected at most {LONGEST_LINE}"


def check_comments(tree):
    for name in tree.cpp_files("src", "tests", "bench", "examples"):
        goes_on = False
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            found = None if goes_on else VAGUE.match(line)
            if found:
                yield f"{name}:{number}: a comment begins with '{found[1]}', not with its noun or verb"
            goes_on = line.lstrip().startswith("//") and "SPDX" not in line


def check_tests_are_built(tree):
    for name in tree.cpp_files("tests/"):
        folder, _, file = name.rpartition("/")
        lists = f"{folder}/CMakeLists.txt"
        if not file.endswith("_test.cpp") or lists not in tree.files:
            continue
        text = tree.text(lists)
        if file not in text and "GLOB" not in text:
            yield f"{name}: no test program has it, see {lists}"


def check_words(tree):
    known = tree.text(WORDS) if WORDS in tree.files else ""
    for name in tree.cpp_files("src/palimpsest/"):
        if name.split("/")[2] == "cli":
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            for flag in FLAG.findall(line):
                yield f"{name}:{number}: a text names {flag} of the command. Try the field of the options"
            for name_in_text, of_function in FIELD.findall(line):
                field = name_in_text or f"ScanReconstructionOptions.{of_function}"
                if f'"{field}"' not in known:
                    yield f"{name}:{number}: {WORDS} has no word of the command for {field}"


def check_environment(tree):
    listed = set(re.findall(r"`([A-Z_]+)`", tree.text(LISTED_VARIABLES))) if LISTED_VARIABLES in tree.files else set()
    read = {}
    for name in tree.cpp_files("src/palimpsest/"):
        if READS_ENVIRONMENT.search(tree.text(name)):
            read[name] = set(VARIABLE.findall(tree.text(name)))
    shown = read.get(SHOWN_VARIABLES, set()) | NO_SETTINGS
    for name, variables in sorted(read.items()):
        for variable in sorted(variables - listed):
            yield f"{name}: reads {variable}, which the table of {LISTED_VARIABLES} lacks"
        for variable in sorted(variables - shown):
            yield f"{name}: reads {variable}, which {SHOWN_VARIABLES} does not show"


CHECKS = [check_tests_are_built, check_layer_includes, check_public_headers, check_shortcuts, check_folders, check_types,
          check_clients, check_adapters, check_locks, check_files, check_comments, check_words,
          check_environment, check_collections]


def violations(root):
    tree = Tree(root)
    return [line for check in CHECKS for line in check(tree)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    found = violations(arguments.root)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
