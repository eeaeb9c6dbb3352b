# SPDX-License-Identifier: Apache-2.0
"""The column for Python of docs/cheat-sheet.md runs from top to bottom; tools/check_snippets.py runs the others."""

import pathlib
import re

import numpy as np

import palimpsest as ps
import palimpsest.ops as po

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/cheat-sheet.md"


def cells():
    column = 0
    for line in PAGE.read_text().splitlines():
        row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if "task" in row:
            column = row.index("Python")
        elif column and len(row) > column:
            yield from re.findall(r"`([^`]+)`", row[column].replace("\\|", "|"))


def test_the_column_is_a_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = list(cells())
    assert len(lines) > 30
    names = {"np": np, "ps": ps, "po": po}
    for line in lines:
        exec(compile(line, line, "exec"), names)  # noqa: S102
    np.testing.assert_array_equal(names["same"], names["head"])
    np.testing.assert_array_equal(names["B"](names["head"]), names["y"])
    assert names["s"].get_value().tolist() == [1, 1, 1]
