#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ source with mutants of the copy-on-write protocol: make_mutants.py HEADER OUTPUT

Each mutant is the whole header with one change, in a namespace of its own. The changes are found in
the text of the functions, so a new line of the protocol gets its mutants without being listed:

- every memory order is weakened by one step;
- every kOneRef and kOneCopier that is added or subtracted is left out or becomes the other one;
- additions and subtractions are exchanged;
- every condition is replaced by true and by false, every comparison by its neighbours, and every
  number in a condition by its neighbours;
- every call of the environment, every count of handles and pins, every reload, `break`,
  `continue`, early `return` and `throw` is left out;
- what is listed in BY_HAND: changes of the order of steps.

A change to nothing that can be compiled, or to an endless loop without any step, is left out.
"""

import re
import sys

WEAKER = {"acq_rel": ["acquire", "release"], "acquire": ["relaxed"], "release": ["relaxed"]}

# (name, function, [(text, replacement), ...]); each text must occur once in the function.
BY_HAND = [
    (
        "the reference is given up before the copy is protected",
        "materialize",
        [
            ("compare_exchange_weak(seen, seen + kOneCopier,",
             "compare_exchange_weak(seen, seen - kOneRef,"),
            ("const Bits leaving = fixed ? kOneRef : kOneRef + kOneCopier;",
             "const Bits leaving = fixed ? kOneRef : 0;"),
        ],
    ),
    (
        "no protection of a copy at all",
        "materialize",
        [
            ("compare_exchange_weak(seen, seen + kOneCopier,",
             "compare_exchange_weak(seen, seen,"),
            ("if (word.load(std::memory_order_acquire) != kOneRef + kOneCopier) continue;",
             "continue;"),
            ("const Bits leaving = fixed ? kOneRef : kOneRef + kOneCopier;",
             "const Bits leaving = kOneRef;"),
        ],
    ),
    (
        "the reference goes first, the copier after it",
        "materialize",
        [
            ("const Bits left = word.fetch_sub(leaving, std::memory_order_acq_rel) - leaving;",
             "word.fetch_sub(kOneRef, std::memory_order_acq_rel);"
             "const Bits left = word.fetch_sub(leaving - kOneRef, std::memory_order_acq_rel)"
             " - (leaving - kOneRef);"),
        ],
    ),
    (
        "the copier goes first, the reference after it",
        "materialize",
        [
            ("const Bits left = word.fetch_sub(leaving, std::memory_order_acq_rel) - leaving;",
             "word.fetch_sub(leaving - kOneRef, std::memory_order_acq_rel);"
             "const Bits left = word.fetch_sub(kOneRef, std::memory_order_acq_rel) - kOneRef;"),
        ],
    ),
    (
        "the word is looked at again after the subtraction",
        "materialize",
        [
            ("const Bits left = word.fetch_sub(leaving, std::memory_order_acq_rel) - leaving;",
             "word.fetch_sub(leaving, std::memory_order_acq_rel);"
             "const Bits left = word.load(std::memory_order_acquire);"),
        ],
    ),
    (
        "the waiter is woken before the copy has ended",
        "materialize",
        [
            ("const Bits left = word.fetch_sub(", "environment.wake(&word);"
             "const Bits left = word.fetch_sub("),
            ("} else if (left == kOneRef) { environment.wake(&word); }", "}"),
        ],
    ),
    (
        "the waiter is woken before the failed copier has left",
        "materialize",
        [
            ("const Bits old = word.fetch_sub(kOneCopier, std::memory_order_relaxed);",
             "environment.wake(&word);"
             "word.fetch_sub(kOneCopier, std::memory_order_relaxed);"),
            ("if (refs(old) - copiers(old) == 1) environment.wake(&word);", ""),
        ],
    ),
    (
        "a copier is counted without a look at the others",
        "materialize",
        [
            ("word.compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_acquire)",
             "(word.fetch_add(kOneCopier, std::memory_order_acquire), true)"),
        ],
    ),
    (
        "an exchange that succeeds acquires nothing",
        "materialize",
        [
            ("compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_acquire)",
             "compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_relaxed,"
             " std::memory_order_acquire)"),
        ],
    ),
    (
        "an exchange that fails acquires nothing",
        "materialize",
        [
            ("compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_acquire)",
             "compare_exchange_weak(seen, seen + kOneCopier, std::memory_order_acquire,"
             " std::memory_order_relaxed)"),
        ],
    ),
    (
        "the reference is given up before there is memory",
        "replace",
        [
            ("environment.allocate();", ""),
            ("if (refs(old) == 1) environment.free_old();",
             "if (refs(old) == 1) environment.free_old(); environment.allocate();"),
        ],
    ),
]


def normalized(text):
    """Without comments, and each run of white space one blank."""
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", text)).strip()


def functions_of(header):
    """Splits the namespace into what comes before the templates and the functions, by name."""
    body = header[header.index("namespace palimpsest::cow {") + len("namespace palimpsest::cow {"):]
    body = normalized(body[: body.rindex("}")])
    pieces = []
    depth = start = 0
    for at, character in enumerate(body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and character in ";}":
            pieces.append(body[start: at + 1].strip())
            start = at + 1
    functions = {}
    rest = []
    for piece in pieces:
        found = re.match(r"template <[^>]*> (?:\[\[nodiscard\]\] )?[\w:]+ (\w+)\(", piece)
        rest.append((found.group(1) if found else None, piece))
        if found:
            functions[found.group(1)] = piece
    return rest, functions


def statements_of(function):
    """(start, end) of each statement or head of a block in the text of a function."""
    start = function.index("{") + 1
    depth = 0
    for at in range(start, len(function)):
        character = function[at]
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and character in ";{}":
            lead = len(function[start:at]) - len(function[start:at].lstrip())
            if function[start:at].strip():
                yield start + lead, at + 1
            start = at + 1


def condition_of(statement):
    """The span of the condition of an if or a while, if the statement has one."""
    found = re.match(r"(?:else )?(?:if|while) \(", statement)
    if not found:
        return None
    depth = 1
    for at in range(found.end(), len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[at], 0)
        if depth == 0:
            return found.end(), at
    raise SystemExit(f"make_mutants.py: no end of the condition in: {statement}")


def changes_of(statement):
    """(start, end, replacement) of every change inside one statement."""
    for found in re.finditer(r"memory_order_(\w+)", statement):
        for weaker in WEAKER.get(found.group(1), []):
            yield found.start(1), found.end(1), weaker
    for found in re.finditer(r"(?<=[(+:?] )kOne(?:Ref|Copier)|(?<=\()kOne(?:Ref|Copier)(?=,)",
                             statement):
        other = {"kOneRef": "kOneCopier", "kOneCopier": "kOneRef"}[found.group()]
        yield found.start(), found.end(), "0"
        yield found.start(), found.end(), other
    for found in re.finditer(r"fetch_(add|sub)", statement):
        yield found.start(1), found.end(1), {"add": "sub", "sub": "add"}[found.group(1)]
    for found in re.finditer(r" - (leaving|copiers\(\w+\))", statement):
        yield found.start(), found.end(), ""
    condition = condition_of(statement)
    if condition:
        has_steps = re.search(r"compare_exchange", statement[condition[0]:condition[1]])
        yield condition[0], condition[1], "true"
        if not has_steps:
            yield condition[0], condition[1], "false"
    for found in re.finditer(r" (==|!=|<) (\d|k[\w +]+)", statement):
        for other in {"==": ["!=", "<=", ">="], "!=": ["=="], "<": ["<=", ">="]}[found.group(1)]:
            yield found.start(1), found.end(1), other
        if found.group(2).isdigit():
            n = int(found.group(2))
            for other in [n + 1] + ([n - 1] if n > 0 else []):
                yield found.start(2), found.end(2), str(other)
    removable = (r"environment\.\w+\([^;]*;|(?:uses|pins)\.fetch_\w+\([^;]*;|seen = [^;]*;"
                 r"|break;|continue;|throw;|return Out[^;]*;")
    if re.fullmatch(removable, statement):
        yield 0, len(statement), ";"
    elif condition and re.fullmatch(r"environment\.\w+\([^;]*;", statement[condition[1] + 2:]):
        yield condition[1] + 2, len(statement), ";"


def mutants_of(functions):
    for function, text in functions.items():
        last = text.rfind("return ")
        seen = {}
        for start, end in statements_of(text):
            statement = text[start:end]
            for first, behind, replacement in changes_of(statement):
                if start == last and first == 0:
                    continue  # a function must end with a return
                old = statement[first:behind]
                shown = statement[:first] + f"[{old} -> {replacement}]" + statement[behind:]
                shown = shown.replace("std::memory_order_", "").rstrip(" {")
                name = f"{function}: {shown}"
                seen[name] = seen.get(name, 0) + 1
                if seen[name] > 1:
                    name += f" (number {seen[name]})"
                mutated = text[: start + first] + replacement + text[start + behind:]
                yield name, function, mutated
    for name, function, changes in BY_HAND:
        mutated = functions[function]
        for old, new in changes:
            if mutated.count(old) != 1:
                raise SystemExit(f"make_mutants.py: {function} has {mutated.count(old)} times: {old}")
            mutated = mutated.replace(old, new)
        yield f"{function}: {name}", function, mutated


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        pieces, functions = functions_of(file.read())
    mutants = list(mutants_of(functions))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("// SPDX-License-Identifier: Apache-2.0\n// Written by make_mutants.py.\n")
        out.write('#include "model/mutants.hpp"\n\nnamespace palimpsest::model {\n\n')
        for number, (_, mutated_function, mutated) in enumerate(mutants):
            out.write(f"namespace m{number} {{\n")
            for function, text in pieces:
                out.write((mutated if function == mutated_function else text) + "\n")
            out.write("}\n\n")
        out.write("const std::vector<Mutant>& mutants() {\n  static const std::vector<Mutant> all{\n")
        for number, (name, _, _) in enumerate(mutants):
            escaped = name.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'      {{"{escaped}", PALIMPSEST_PROTOCOL_OF(m{number})}},\n')
        out.write("  };\n  return all;\n}\n\n}  // namespace palimpsest::model\n")


if __name__ == "__main__":
    main()
