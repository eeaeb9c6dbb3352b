# SPDX-License-Identifier: Apache-2.0
"""tools/check_statics.py finds each kind of violation: check_statics_test.py COMPILER"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = sys.argv.pop() if len(sys.argv) > 1 else "c++"

HEAD = "#include <string>\n#include \"palimpsest/base/immortal.hpp\"\nnamespace palimpsest {\n"


class CheckStatics(unittest.TestCase):
    def run_on(self, text, name="base/some.cpp"):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            layer, file = name.split("/")
            made = build / "src/palimpsest" / layer / "CMakeFiles" / f"palimpsest_{layer}.dir" / (file + ".o")
            made.parent.mkdir(parents=True)
            source = build / file
            source.write_text(HEAD + text + "\n}\n")
            subprocess.run([COMPILER, "-std=c++20", "-O1", "-I", ROOT / "src", "-c", source, "-o", made],
                           check=True)
            done = subprocess.run([sys.executable, ROOT / "tools/check_statics.py", build],
                                  capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.returncode, 1 if done.stdout else 0)
            return done.stdout

    def test_constants_and_immortal_objects_pass(self):
        self.assertEqual(self.run_on(
            "std::string& a() { return immortal([] { return std::string(\"a\"); }); }\n"
            "constinit thread_local const char* b = nullptr;\n"
            "int c() { static constinit int n = 0; return ++n; }"), "")

    def test_an_object_that_is_destroyed_at_the_end_of_the_process(self):
        self.assertIn("base/some.cpp: has a destructor that runs when the process ends",
                      self.run_on("std::string a(\"a\");"))

    def test_an_object_that_is_destroyed_at_the_end_of_a_thread(self):
        self.assertIn("base/some.cpp: has a destructor that runs when a thread ends",
                      self.run_on("std::string& a() { thread_local std::string s(\"a\"); return s; }"))

    def test_an_object_that_is_made_at_its_first_use(self):
        self.assertIn("base/some.cpp: palimpsest::a(int)::n is made at its first use",
                      self.run_on("int a(int i) { static const int n = i; return n; }"))

    def test_a_tree_without_objects(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, ROOT / "tools/check_statics.py", folder],
                                  capture_output=True, text=True)
            self.assertIn("has no objects of the library", done.stdout)


if __name__ == "__main__":
    unittest.main()
