# SPDX-License-Identifier: Apache-2.0
"""The console script `palimpsest`: runs the command of the package, which it finds without importing it."""

import importlib.util
import os
import sys


def main() -> None:
    found = importlib.util.find_spec("palimpsest")
    assert found and found.submodule_search_locations
    command = os.path.join(found.submodule_search_locations[0], "bin", "palimpsest")
    os.execv(command, ["palimpsest", *sys.argv[1:]])
