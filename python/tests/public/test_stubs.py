# SPDX-License-Identifier: Apache-2.0
"""The committed stubs are those of the module."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import palimpsest as ps

PATTERNS = pathlib.Path(__file__).parents[3] / "src" / "palimpsest" / "python" / "stubs.pat"
STUBS = ["_core/__init__.pyi", "_core/ops/__init__.pyi", "_core/ops/inplace.pyi", "_core/errors.pyi"]


def written(folder):
    """Stubs of the module that is imported here."""
    call = [sys.executable, "-m", "nanobind.stubgen", "--quiet", "--exclude-docstrings", "-p", str(PATTERNS)]
    for target in (["-m", "palimpsest._core", "-r", "-O", str(folder)],
                   ["-m", "palimpsest.errors", "-o", str(folder / "errors.pyi")]):
        subprocess.run(call + target, check=True, env={**os.environ, "PALIMPSEST_STUBS": "1"})


def stub_of(name):
    path = pathlib.Path(ps.__file__).parent / name
    return path.read_text()


def test_stubs_are_up_to_date(tmp_path):
    pytest.importorskip("nanobind")
    if not PATTERNS.exists():
        pytest.skip("an installed package")
    written(tmp_path)
    changed = [name for name in [*STUBS, "errors.pyi"] if (tmp_path / name).read_text() != stub_of(name)]
    assert not changed, "cmake --build --preset dev --target python_stubs writes them anew"


def declared(name):
    """The names that a stub declares."""
    names = set()
    for node in ast.parse(stub_of(name)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


@pytest.mark.parametrize("module, stub", [(ps._core, STUBS[0]), (ps._core.ops, STUBS[1]),
                                          (ps._core.ops.inplace, STUBS[2]), (ps._core.errors, STUBS[3])])
def test_every_name_has_a_stub(module, stub):
    names = {name for name, value in vars(module).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert names and names - declared(stub) == set()
