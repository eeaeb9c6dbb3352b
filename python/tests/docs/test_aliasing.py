# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/python/aliasing.md holds."""

import ast
import pathlib
import re

import numpy as np
import pytest

import palimpsest as ps

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python/aliasing.md"
TEXT = PAGE.read_text()
NAMES = "\n".join(re.findall(r"^>>> (.*)$", TEXT, re.MULTILINE))
ROWS = re.findall(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \|$", TEXT, re.MULTILINE)


def names():
    space = {}
    exec(compile(NAMES, PAGE.name, "exec"), space)  # noqa: S102
    return space


def test_every_row_is_read():
    assert len(ROWS) == len(re.findall(r"^\| `", TEXT, re.MULTILINE)) > 40


@pytest.mark.parametrize(("line", "expression", "value"), ROWS, ids=[line for line, _, _ in ROWS])
def test_row(line, expression, value):
    space = names()
    exec(line, space)  # noqa: S102
    assert eval(expression, space) == ast.literal_eval(value)  # noqa: S307


def test_what_is_read_only_is_never_written():
    space = names()
    expected = space["lent"](np.ones(4))
    assert np.array_equal(space["lent"](space["b"]), expected)
    with pytest.raises(ps.errors.ValueError, match="read-only"):
        space["double"].call_into(space["b"], space["a"])
    assert np.array_equal(space["b"], np.ones(4))
