# SPDX-License-Identifier: Apache-2.0
"""The version has one source: the module, the metadata, the command and find_package agree."""

import importlib.metadata
import pathlib
import re
import subprocess

import pytest

import palimpsest as ps

PACKAGE = pathlib.Path(ps.__file__).parent
BUILD = PACKAGE.parents[1]  # of a build tree
ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_all_versions_agree():
    command = next((c for c in (PACKAGE / "bin" / "palimpsest", BUILD / "palimpsest") if c.is_file()), None)
    if command is None:
        pytest.skip("the command is not built")
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    versions = {"command": said.stdout.split()[-1]}
    if not (BUILD / "palimpsestConfigVersion.cmake").is_file():  # an installed package
        versions["metadata"] = importlib.metadata.version("palimpsest-linops")
    else:
        config = (BUILD / "palimpsestConfigVersion.cmake").read_text()
        versions["find_package"] = re.search(r'set\(PACKAGE_VERSION "([\d.]+)"', config)[1]
        # The metadata of a package are read from this file by this expression.
        pattern = re.search(r"^regex = '(.*)'$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
        versions["metadata"] = re.search(pattern, (ROOT / "CMakeLists.txt").read_text())["value"]
    assert versions == dict.fromkeys(versions, ps.__version__)
