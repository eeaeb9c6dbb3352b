# SPDX-License-Identifier: Apache-2.0
"""The programs of the gallery run, and draw what the pages show."""

import importlib.util
import os
import pathlib
import re
import resource
import subprocess
import sys

import pytest

import palimpsest as ps

pytestmark = pytest.mark.extras

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = sorted((ROOT / "examples" / "python").glob("[0-9]*.py"))
PICTURES = ROOT / "docs" / "images" / "gallery"
PACKAGES = ("matplotlib", "pylops", "xarray")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(program, tmp_path):
    text = program.read_text()
    missing = [name for name in PACKAGES if (name == "matplotlib" or re.search(rf"^import {name}\b", text, re.MULTILINE))
               and not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    assert text.count("\n") <= 80 and "# %%" in text
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(pathlib.Path(ps.__file__).parents[1])}
    run = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 40  # 20 s on two processors
    drawn = re.findall(r'\.save\("([\w.]+)"', text)
    assert drawn
    page = (ROOT / "docs" / "gallery.md").read_text()
    for name in drawn:
        assert 0 < (tmp_path / name).stat().st_size <= 150_000
        assert (PICTURES / name).is_file() and f"(images/gallery/{name})" in page and f"python/{program.name})" in page
    announced = re.findall(r"announced ([\d,]+) bytes, measured ([\d,]+)", run.stdout)
    assert all(planned == measured for planned, measured in announced)


def test_there_are_25():
    if not (ROOT / "examples" / "python").is_dir():
        pytest.skip("an installed package")
    assert [int(path.name[:2]) for path in PROGRAMS] == list(range(1, 26))
    assert sum(path.stat().st_size for path in PICTURES.glob("*.png")) < 1_500_000
