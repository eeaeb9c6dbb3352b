#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers for the Python module: fields of option aggregates, and doc comments.

It writes two files into a folder. options.inc: for each aggregate of options a macro that lists calls
of a function for each of its fields, in order. documentation.inc: pairs of a name and its docstring in the
form of numpydoc, for functions, classes and fields. A file that would not change is left alone.
"""

import argparse
import pathlib
import re

COMMENT = re.compile(r"^\s*///<?\s?(.*)$")
SECTIONS = ("Math", "Shapes", "Units", "DTypes", "Aliases", "Stops", "Status", "Objective", "Threads",
            "Memory", "Cost")
# Words of C++ in comments, and those of Python.
WORDS = [
    (r"\bstd::nullopt\b", "None"),
    (r"\bautomatic: by\b", "None: by"),
    (r"\bbudget_bytes\b", "budget"),
    (r"\bis_mutable\b", "mutable"),
    (r"\.(H|N)\(\)", r".\1"),
    (r"\b(RecordObjective|Method|FftNorm|Copy|Status|Penalty)::(\w+)", r"'\2'"),
    (r"\{\{([^{},]+),\s*([^{},]+)\}\}", r"dict(\1: \2)"),
    (r"\{\.(\w+) = ([^{}]*)\}", r"\1=\2"),
    (r"\{\.(\w+) = ([^{}]*)\}", r"\1=\2"),  # around one
    (r"\bdict\(([^()]*)\)", r"{\1}"),
    (r"\bfunction\(\{([^{}]*)\}", r"function([\1]"),
    (r"=detect_nan\b", "='detect_nan'"),
    (r"\b[Uu]nset: ", "None: "),
    (r"\bconst members\b", "members that change nothing"),
    (r"\btrue\b", "True"),
    (r"\bfalse\b", "False"),
    (r"\bUndefined\b", "None"),
    (r"(\w)::(\w)", r"\1.\2"),
]
# What an aggregate has for C++ alone.
CPP_ONLY = {"cancel"}


def in_python(text):
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text


def comment_lines(lines):
    return [COMMENT.match(line)[1].rstrip() for line in lines]


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


class Headers:
    """What is documented in a set of headers."""

    def __init__(self, paths):
        self.macros = {}      # name: body
        self.aggregates = {}  # name: [(field, comment)]
        self.documents = {}   # name: lines of the comment
        self.parameters = {}  # name of a function: types of its parameters
        texts = [path.read_text() for path in paths]
        for text in texts:
            for name, body in re.findall(r"#define (PALIMPSEST_SOLVE_\w+)(?:\(\w+\))?\s((?:.*\\\n)*.*)", text):
                self.macros[name] = body.replace("\\\n", "\n")
        for text in texts:
            self.read(text)

    def read(self, text):
        text = re.sub(r"(PALIMPSEST_SOLVE_\w+)(?:\([^)]*\))?;", self.expanded, text)
        lines = text.split("\n")
        pending, covered, scope, i = [], [], "", 0
        while i < len(lines):
            line = lines[i]
            inner = re.match(r"namespace (?:PALIMPSEST_API )?(ops|ops::inplace|inplace) \{", line)
            if inner:
                scope = "ops.inplace." if "inplace" in inner[1] else "ops."
            if re.match(r"\}\s*// namespace (ops|inplace)", line):
                scope = "ops." if "inplace" in line and scope == "ops.inplace." and "::" not in line else ""
            if line.strip().startswith("///") and not line.strip().startswith("///<"):
                pending.append(line)
                i += 1
                continue
            if not line.strip():
                pending, covered = [], []
                i += 1
                continue
            opened = re.match(r"\s*(?:struct|class|enum class) (?:\[\[\w+\]\] )?(\w+)[^;]*\{", line)
            if opened:
                name = opened[1]
                self.note(name, pending)
                end = self.end_of_block(lines, i)
                self.read_fields(name, lines[i + 1:end])
                pending, covered = [], []
                i = end + 1 if end > i else i + 1
                continue
            if re.match(r"\s*(#|//|namespace|template|using|public:|private:|throw|return|\})", line):
                i += 1
                continue
            statement = line
            while i + 1 < len(lines) and not re.search(r"[;{]\s*(//.*)?$", statement):
                i += 1
                statement += " " + lines[i].strip()
            i += 1
            found = re.match(r"\s*(?:constexpr |inline |explicit |static )*[\w:<>,&*\s]*?\b(\w+)\((.*)\)[^()]*[;{]",
                             statement)
            if found:
                covered = pending or covered
                self.note(scope + found[1], covered)
                self.parameters.setdefault(scope + found[1], found[2])
            pending = []

    def expanded(self, match):
        body = self.macros.get(match[1], "")
        body = re.sub(r"/\*\*(.*?)\*/", lambda m: "/// " + " ".join(m[1].split()) + "\n", body, flags=re.DOTALL)
        return "\n".join(line for line in body.split("\n") if line.strip()) + ";"

    @staticmethod
    def end_of_block(lines, start):
        depth = 0
        for i in range(start, len(lines)):
            code = without_comments(lines[i])
            depth += code.count("{") - code.count("}")
            if depth == 0:
                return i
        return len(lines) - 1

    def note(self, name, comment):
        if comment:
            self.documents.setdefault(name, comment_lines(comment))

    def read_fields(self, name, lines):
        fields, pending = [], []
        text = []
        for line in lines:
            if line.strip().startswith("///") and not text:
                pending.append(line)
                continue
            text.append(line)
            code = without_comments("\n".join(text)).strip()
            if not code:
                text, pending = [], pending if line.strip() else []
                continue
            if not code.endswith((";", ",")) or code.count("{") > code.count("}"):
                if code.endswith("}"):  # a member function
                    text, pending = [], []
                continue
            after = re.search(r"///<\s?(.*)", line)
            comment = " ".join(comment_lines(pending)) if pending else after[1] if after else ""
            for field in self.declared(code):
                fields.append((field, comment.strip()))
            text, pending = [], []
        if fields:
            self.aggregates.setdefault(name, fields)

    @staticmethod
    def declared(code):
        """Names that a declaration of fields declares."""
        code = re.sub(r"\{[^{}]*\}", "{}", code)
        if "(" in re.sub(r"<[^=;]*>", "", code.split("=")[0]) or re.match(r"(using|friend|static|enum|struct)\b", code):
            return []
        previous = None
        while previous != code:
            previous = code
            code = re.sub(r"<[^<>]*>", "", code)
        code = re.sub(r"\([^()]*\)", "", code)
        head, *rest = code.rstrip(";,").split(",")
        first = re.match(r"\s*(?:const )?[\w:]+(?:\s*[&*])?\s+(\w+)\s*(?:=.*)?$", head, re.DOTALL)
        if not first:
            return []
        names = [first[1]]
        for part in rest:
            more = re.match(r"\s*(\w+)\s*(?:=.*)?$", part, re.DOTALL)
            if more:
                names.append(more[1])
        return names


def sections_of(lines):
    """The paragraphs in front, and the sections by their names."""
    front, sections, current = [], {}, None
    # The last of these sections may stand behind the sentence of a short comment.
    lines = [part for line in lines for part in re.split(r"(?<=\.) (?=(?:Aliases|Cost|Errors)\s{2,})", line)]
    for line in lines:
        head = re.match(r"(Math|Shapes|Units|DTypes|Aliases|Stops|Status|Objective|Threads|Memory|Cost|"
                        r"Errors|Source)(?:\s{2,}|(?<=Objective) )(.*)", line)
        if head:
            current = head[1]
            sections[current] = [head[2]]
        elif current and line.startswith(" "):
            sections[current].append(line.strip())
        elif current and not line:
            current = None
            front.append("")
        else:
            current = None
            front.append(line)
    return front, {name: " ".join(words) for name, words in sections.items()}


def raised(text):
    """Errors as numpydoc lists them: names, and when they come."""
    for part in re.split(r";\s+", text):
        match = re.match(r"((?:\w+Error|OutOfMemory|NotSupported)(?:, \w+Error)*)\s?(.*)", part, re.DOTALL)
        if match:
            yield match[1], match[2].lstrip(": ") or "where an argument is wrong."
        else:
            yield "", part


def docstring(name, headers):
    front, sections = sections_of(headers.documents[name])
    text = in_python("\n".join(front)).strip("\n")
    if "Errors" in sections:
        text += "\n\nRaises\n------"
        for error, when in raised(in_python(sections["Errors"])):
            if error:
                text += f"\n{error}\n    {when}"
            else:
                text += f"\n    {when}" if "\n" in text.split("------")[-1] else f"\nError\n    {when}"
    notes = [(key, sections[key]) for key in SECTIONS if key in sections]
    if notes:
        text += "\n\nNotes\n-----"
        for key, note in notes:
            text += f"\n{key}: {in_python(note)}\n"
        text = text.rstrip("\n")
    if "Source" in sections:
        text += "\n\nReferences\n----------\n" + sections["Source"]
    return text


def literal(text):
    """A literal of C++; long ones are cut into pieces."""
    def quoted(piece):
        return '"' + piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return "\n    ".join(quoted(line) for line in text.splitlines(keepends=True)) or '""'


def options_file(headers):
    lines = ["// Fields of the option aggregates, made by headers.py.", "#pragma once"]
    for name, fields in sorted(headers.aggregates.items()):
        if re.fullmatch(r"\w+(Options|Sampling)", name):
            visits = ", ".join(f'v("{field}", o.{field})' for field, _ in fields if field not in CPP_ONLY)
            lines.append(f"#define PALIMPSEST_FIELDS_{name}(v, o) {visits}")
    return "\n".join(lines) + "\n"


def examples(folder):
    """Pairs of a name and its examples: comments `// Example of NAME, NAME:` in front of the binding, with the lines
    indented, and files of paragraphs under lines `## name` in `examples`."""
    for path in sorted(folder.rglob("*.cpp")):
        for names, text in re.findall(r"^ *// Example of ([\w., ]+):\n((?: *//   .*\n)+)", path.read_text(), re.MULTILINE):
            for name in names.split(", "):
                yield name, re.sub(r"^ *//   ", "", text, flags=re.MULTILINE).strip("\n")
    for path in sorted((folder / "examples").glob("*.md")):
        for part in re.split(r"^## ", path.read_text(), flags=re.MULTILINE)[1:]:
            names, _, text = part.partition("\n")
            code = "\n".join(re.findall(r"```python\n(.*?)\n```", text, re.DOTALL))
            for name in names.split(", "):
                yield name.strip(), code.strip("\n")


def described_parameters(path):
    """Descriptions by `function.parameter`, or `*.parameter` for all functions; and the parameters whose comments in C++
    are left out."""
    found, instead = {}, set()
    for line in path.read_text().splitlines():
        names, colon, text = line.removeprefix("= ").partition(": ")
        if not colon or line.startswith("#"):
            continue
        found.update((name if "." in name else "*." + name, text) for name in names.split(", "))
        if line.startswith("= "):
            instead.update(names.split(", "))
    return found, instead


def documentation_file(headers, folder):
    entries = {name: docstring(name, headers) for name in headers.documents}
    described, instead = described_parameters(folder / "parameters.txt")
    for name, types in headers.parameters.items():
        for aggregate in re.findall(r"\b\w+(?:Options|Sampling)\b", types):
            for field, comment in headers.aggregates.get(aggregate, []):
                if comment and field not in instead:
                    entries.setdefault(f"{name}.{in_python(field)}", in_python(comment))
    entries.update(described)
    entries.update((name + "#", code) for name, code in examples(folder))
    # In the order of std::string_view.
    return "\n".join(f"{{{literal(name)}sv, {literal(entries[name])}sv}},"
                     for name in sorted(entries, key=str.encode)) + "\n"


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def public_headers(root):
    for path in sorted(root.rglob("*.hpp")):
        if path.relative_to(root).parts[0] in ("python", "cli"):
            continue
        if "// Internal" not in "\n".join(path.read_text().split("\n")[:3]):
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    headers = Headers(public_headers(arguments.root))
    arguments.out.mkdir(parents=True, exist_ok=True)
    write(arguments.out / "options.inc", options_file(headers))
    write(arguments.out / "documentation.inc", documentation_file(headers, arguments.root / "python"))


if __name__ == "__main__":
    main()
