# SPDX-License-Identifier: Apache-2.0
"""The console script `palimpsest`: runs the command of the package, which it finds without importing it."""

import importlib.util
import os
import sys


def main():
    package = importlib.util.find_spec("palimpsest").submodule_search_locations[0]
    command = os.path.join(package, "bin", "palimpsest")
    os.execv(command, ["palimpsest", *sys.argv[1:]])
