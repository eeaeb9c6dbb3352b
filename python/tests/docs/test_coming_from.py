# SPDX-License-Identifier: Apache-2.0
"""Both sides of each row of docs/python/coming-from.md give the same numbers."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

pytestmark = pytest.mark.extras

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python/coming-from.md"
TEXT = PAGE.read_text()
BLOCKS = re.compile(r"^```python ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMON, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
PACKAGES = {"torch-named-linops": "torchlinops", "SigPy": "sigpy", "PyLops": "pylops",
            "PyTensor": "pytensor", "SciPy": "scipy"}


def rows_of(section):
    title, _, body = section.partition("\n")
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \| (.*?) ?\|$", body, re.MULTILINE)
    return PACKAGES[title], body, [[c.replace(r"\|", "|") for c in row] for row in rows]


TABLES = [rows_of(section) for section in SECTIONS]


def names(code, start=None):
    space = dict(start or {})
    exec(compile(code, PAGE.name, "exec"), space)  # noqa: S102
    return space


OURS = names("".join(code for _, code in BLOCKS.findall(COMMON)))


def test_every_package_has_rows_enough():
    assert [package for package, _, _ in TABLES] == list(PACKAGES.values())
    assert all(len(rows) >= 12 for _, _, rows in TABLES)
    lines = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert len(lines) == sum(len(rows) for _, _, rows in TABLES)


@pytest.mark.filterwarnings("ignore")  # warnings of the other packages
@pytest.mark.parametrize("package, body, rows", TABLES, ids=list(PACKAGES.values()))
def test_both_sides_agree(package, body, rows):
    own = names("".join(code for name, code in BLOCKS.findall(body) if not name), OURS)
    theirs = None
    if importlib.util.find_spec(package) is not None:
        theirs = names("".join(code for name, code in BLOCKS.findall(body) if name), OURS)
        if package == "scipy":
            own["scipy"] = theirs["scipy"]
    wrong = []
    for left, right, _ in rows:
        if theirs is None and package == "scipy":
            continue
        try:
            ours = np.asarray(eval(right, own))  # noqa: S307
            assert np.isfinite(ours).all()
            if theirs is not None:
                np.testing.assert_allclose(
                    ours, np.asarray(eval(left, theirs)), rtol=1e-6, atol=1e-9)  # noqa: S307
        except Exception as error:
            wrong.append(f"{left}   |   {right}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
