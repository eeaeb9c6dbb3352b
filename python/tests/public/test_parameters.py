# SPDX-License-Identifier: Apache-2.0
"""Every parameter of a public function or method has a description."""

import inspect
import re

import palimpsest as ps
import palimpsest.ops.inplace


def documented():
    """Pairs of a name and its docstring: functions, classes and their methods."""
    seen = {id(value): (name, value) for name, value in vars(ps).items() if not name.startswith("_") and callable(value)}
    for prefix, module in (("ops.", ps.ops), ("ops.inplace.", ps.ops.inplace)):
        seen.update({id(v): (prefix + n, v) for n, v in vars(module).items() if not n.startswith("_") and callable(v)})
    for name, value in seen.values():
        yield name, value
        if inspect.isclass(value) and value.__module__.startswith("palimpsest"):
            for member, method in vars(value).items():
                if not member.startswith("_") and callable(method):
                    yield f"{name}.{member}", method


def parameters(docstring):
    """Pairs of a parameter and whether a description follows it."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n--+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    lines = section[1].split("\n") if section else []
    for i, line in enumerate(lines):
        if line and not line.startswith(" ") and not line.startswith("("):
            yield re.split(r" :|,", line)[0], i + 1 < len(lines) and lines[i + 1].startswith("    ")


def test_every_parameter_has_a_description():
    count, without = 0, []
    for name, value in documented():
        for parameter, is_described in parameters(inspect.getdoc(value) or ""):
            count += 1
            if not is_described:
                without.append(f"{name}({parameter})")
    assert count > 2000
    assert without == []
