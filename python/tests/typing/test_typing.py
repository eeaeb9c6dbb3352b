# SPDX-License-Identifier: Apache-2.0
"""A program that uses the package, by mypy."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

import palimpsest as ps

HERE = pathlib.Path(__file__).parent
pytest.importorskip("mypy")


def run(module, *arguments, cwd=None):
    path = str(pathlib.Path(ps.__file__).parents[1])
    environment = {**os.environ, "MYPYPATH": path, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, cwd=cwd,
                          env=environment)


def test_a_typed_program():
    program = HERE / "typed.py"
    found = run("mypy", "--strict", "--no-error-summary", "--no-incremental", str(program))
    errors = {}
    for line in found.stdout.splitlines():
        match = re.match(r".*typed\.py:(\d+): error: (.*)", line)
        if match:
            errors.setdefault(int(match[1]), []).append(match[2])
    expected = {number: line.split("# E: ")[1] for number, line in enumerate(program.read_text().splitlines(), 1)
                if "# E: " in line}
    assert len(expected) > 5
    assert set(errors) == set(expected), found.stdout
    for number, pattern in expected.items():
        assert any(re.search(pattern, message) for message in errors[number]), errors[number]


ROOT = HERE.parents[2]


def test_programs_of_the_pages(tmp_path):
    gallery = ROOT / "examples" / "python"
    if not gallery.is_dir():
        pytest.skip("an installed package")
    pytest.importorskip("matplotlib")
    (tmp_path / "readme.py").write_text(re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1])
    tutorial = re.sub(r"^```.*$", "", (ROOT / "docs" / "tutorial.md").read_text(), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_examples(tutorial)
    (tmp_path / "tutorial.py").write_text("".join(example.source for example in examples))
    found = run("mypy", "--strict", "--no-error-summary", "--no-incremental", *sorted(map(str, gallery.glob("*.py"))),
                str(tmp_path / "readme.py"), str(tmp_path / "tutorial.py"), cwd=gallery)
    assert len(examples) > 15 and found.returncode == 0, found.stdout


@pytest.mark.slow
def test_the_package_itself():
    if not (ROOT / "python" / "palimpsest").is_dir():
        pytest.skip("an installed package")
    found = run("mypy", "--strict", "--no-incremental", "--config-file", str(ROOT / "pyproject.toml"),
                "python/palimpsest", "python/_palimpsest_command.py", cwd=ROOT)
    assert found.returncode == 0, found.stdout


@pytest.mark.slow
def test_stubs_say_what_is_there(tmp_path):
    found = run("mypy.stubtest", "palimpsest", "--concise", "--mypy-config-file", str(ROOT / "pyproject.toml"),
                "--ignore-unused-allowlist", "--allowlist",
                str(HERE / "stubtest.txt"), cwd=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
