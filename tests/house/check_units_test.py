# SPDX-License-Identifier: Apache-2.0
"""tools/check_units.py finds names that clash in a unit only, and what has been mended since."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_units.py"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(clash LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(clash OBJECT a.cpp b.cpp)
set_target_properties(clash PROPERTIES UNITY_BUILD ON)
target_precompile_headers(clash PRIVATE <cstddef>)
"""
PRESETS = {"version": 5, "configurePresets": [{"name": "release", "generator": "Ninja",
                                               "binaryDir": "${sourceDir}/build"}]}
FIRST = "namespace first { int check(int); }\nusing namespace first;\nint a() { return check(1); }\n"
SECOND = "namespace second { int check(int); }\nusing namespace second;\nint b() { return check(2); }\n"


class CheckUnits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "CMakeLists.txt").write_text(PROJECT)
        (self.root / "CMakePresets.json").write_text(json.dumps(PRESETS))

    def run_on(self, a, b):
        (self.root / "a.cpp").write_text(a)
        (self.root / "b.cpp").write_text(b)
        return subprocess.run([sys.executable, TOOL, self.root / "units", self.root],
                              capture_output=True, text=True)

    def test_a_clash_of_two_opened_namespaces_is_found_until_it_is_mended(self):
        found = self.run_on(FIRST, SECOND)
        self.assertEqual(found.returncode, 1)
        self.assertIn("check(int)’ is ambiguous", found.stderr.replace("'", "’"))
        mended = self.run_on(FIRST, SECOND.replace("check", "check_second"))
        self.assertEqual((mended.returncode, mended.stdout, mended.stderr), (0, "", ""))

    def test_a_name_that_two_sources_define_for_themselves_is_found(self):
        own = "namespace { int own() { return 1; } }\n"
        found = self.run_on(own, own)
        self.assertEqual(found.returncode, 1)
        self.assertIn("redefinition", found.stderr)


if __name__ == "__main__":
    unittest.main()
