# SPDX-License-Identifier: Apache-2.0
"""The code of Python in README.md and docs/ does what the pages say."""

import builtins
import contextlib
import doctest
import gc
import importlib.util
import io
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md"))
         if "```python\n" in page.read_text() and page.name != "coming-from.md"]


@pytest.mark.extras
@pytest.mark.skipif(np.__version__.startswith("1."), reason="the pages show what NumPy 2 prints")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page):
    text = page.read_text()
    # A block that names a package runs if the package is installed.
    for package in set(re.findall(r"^```python (\w+)$", text, re.MULTILINE)):
        if importlib.util.find_spec(package) is None:
            text = re.sub(rf"^```python {package}\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    # A fence ends an example, as an empty line does.
    examples = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    failures = io.StringIO()
    doctest.DocTestRunner().run(test, out=failures.write)
    gc.collect()
    vars(builtins).pop("_", None)  # the last result, which the display of Python keeps
    assert not failures.getvalue(), failures.getvalue()


def test_example_of_the_readme():
    text = (ROOT / "README.md").read_text()
    program, output = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})  # noqa: S102
    assert printed.getvalue() == output
