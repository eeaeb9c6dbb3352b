# SPDX-License-Identifier: Apache-2.0
"""Many faults in one build: each is compiled beside the right code, and the environment variable
PLANTED_FAULT says which one of them a run has.

A fault stands within an expression, the smallest between brackets, commas, semicolons and signs of
assignment: `e` becomes `(fault(n) ? (wrong e) : (e))`. A statement that is left out becomes
`{ if (!fault(n)) statement }`. What has no such form, does not compile in it (bounds of arrays, different
types), or is calculated by the compiler is to be built alone.
"""

import re

HEADER = """// Chooses one of the planted faults.
#pragma once

#include <cstdlib>
#include <type_traits>

namespace planted {

inline int chosen() {
  static const int number = [] {
    const char* const text = std::getenv("PLANTED_FAULT");
    return text ? std::atoi(text) : -1;
  }();
  return number;
}
constexpr bool fault(int number) { return !std::is_constant_evaluated() && chosen() == number; }

}  // namespace planted
"""

OPENING, CLOSING = "([{", ")]}"
# Text before an expression that is not a bracket or comma.
LEADS = re.compile(r"\s*(?:case\b[^:]*:|default:|return\b|else\b|\[\[\w+\]\])")
ASSIGNS = re.compile(r"(?<![=!<>])(?:[-+*/%|&^]|<<|>>)?=(?!=)")


def segment_around(code, first, last):
    """[start, end) of the expression around [first, last), or None."""
    start, depth = first, 0
    while start > 0:
        c = code[start - 1]
        if c in CLOSING:
            depth += 1
        elif c in OPENING:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and c in ",;":
            break
        start -= 1
        # The end of a block before a statement.
        if depth == 1 and c == "}" and re.match(r" *\n", code[start + 1:first]):
            start += 1
            break
    end, depth = last, 0
    while end < len(code):
        c = code[end]
        if c in OPENING:
            depth += 1
        elif c in CLOSING:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and c in ",;":
            break
        end += 1
    if end == len(code):
        return None
    while lead := LEADS.match(code, start, first):
        start = lead.end()
    start = after_head(code, start, first)
    # An assigned or initializing expression, except where the assignment sign itself is the fault.
    for sign in ASSIGNS.finditer(code, start, first):
        inside = code[start:sign.start()]
        if inside.count("(") == inside.count(")") and inside.count("{") == inside.count("}"):
            start = sign.end()
    # The range of a loop.
    found = re.match(r"[^?]*?[\w&*>\]] : ", code[start:first])
    if found and re.match(r"\s*(?:const )?[\w:<>]+ ?[&*]* ?(?:\w+|\[[\w, ]+\]) : ", code[start:first]):
        start += found.end()
    while start < first and code[start].isspace():
        start += 1
    return start, end


def after_head(code, start, first):
    """Behind the condition of an if, for or while whose statement stands on the same line."""
    head = re.match(r"\s*(?:else )?(?:if|for|while) (?:constexpr )?\(", code[start:first])
    if not head:
        return start
    depth, at = 1, start + head.end()
    while at < first and depth > 0:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    if depth > 0:
        return start
    while lead := LEADS.match(code, at, first):
        at = lead.end()
    return after_head(code, at, first)


def is_constant(code, at):
    """In a declaration that the compiler evaluates, where no switch has an effect?"""
    start = max(code.rfind(sign, 0, at) for sign in ";}") + 1
    return re.search(r"\b(?:constexpr|consteval|constinit|static_assert)\b", code[start:at]) is not None


def edit_of(text, code, fault, number):
    """(start, end, replacement) in `text`, or None."""
    first = sum(len(line) + 1 for line in text.split("\n")[:fault.line]) + fault.column
    last = first + len(fault.old)
    if is_constant(code, first):
        return None
    test = f"planted::fault({number})"
    if fault.kind == "removed statement":
        return first, last, f"{{ if (!{test}) {fault.old} }}"
    if fault.kind == "negated condition":
        return first, last, f"{test} != static_cast<bool>({fault.old})"
    if fault.kind == "exchanged arguments":
        a, b = fault.old.split(", ")
        return first, last, f"({test} ? {b} : {a}), ({test} ? {a} : {b})"
    if fault.old.startswith("return "):
        right, wrong = fault.old[7:-1], fault.new[7:-1]
        return first, last, f"return {test} ? {wrong} : {right};"
    span = segment_around(code, first, last)
    if span is None:
        return None
    start, end = span
    right = text[start:end]
    wrong = text[start:first] + fault.new + text[last:end]
    if not right.strip() or "//" in right or code[start:end].count("{") != code[start:end].count("}"):
        return None
    return start, end, f"({test} ? ({' '.join(wrong.split())}) : ({right}))"


def switched(text, code, faults):
    """The text with all of [(number, fault)] that have a form, and [(number, first line, last line)]."""
    edits = []
    for number, fault in faults:
        edit = edit_of(text, code, fault, number)
        if edit and not any(edit[0] < e[1] and e[0] < edit[1] for e, _ in edits):
            edits.append((edit, number))
    places = [(number, text.count("\n", 0, start), text.count("\n", 0, end))
              for (start, end, _), number in edits]
    for (start, end, replacement), _ in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    # The include replaces the first line, a comment, so that line numbers stay the same.
    return '#include "palimpsest/planted_fault.hpp"\n' + text.split("\n", 1)[1], places
