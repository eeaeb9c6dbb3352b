# SPDX-License-Identifier: Apache-2.0
"""tools/check_pages.py finds each kind of violation and says where."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_pages.py"

# A tree without violations.
CLEAN = {
    "src/palimpsest/imaging/scan.hpp": "class ScanFile {};\n",
    "docs/operators.md": "### Identity\n\n### Zero\n\n## Rules\n\n### of names\n",
    "README.md": "The class `ScanFile` (`imaging/scan.hpp`), [two kinds](docs/operators.md).\n",
}


class CheckPages(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **changes}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.returncode, 1 if done.stdout else 0)
            return done.stdout

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.run_on({}), "")

    def test_types_exist(self):
        found = self.run_on({"docs/a.md": "First.\n\n```cpp\nScanFyle f;\n```\n\nSee `ScanFyle::run()`.\n"})
        self.assertEqual(found, "docs/a.md:7: no code has the name ScanFyle\n")

    def test_functions_exist(self):
        code = {"src/palimpsest/imaging/scan.cpp": "void read_scan() {}\nvoid sort_scan() {}\n"}
        self.assertEqual(self.run_on({**code, "docs/a.md": "`read_scan` (`imaging/scan.cpp`), `g(a_b=1)`, `a_b.npy`\n"}), "")
        self.assertEqual(self.run_on({**code, "docs/a.md": "First\n`red_scan()`\n"}),
                         "docs/a.md:2: no code has the name red_scan\n")

    def test_names_are_in_the_source_behind_them(self):
        code = {"src/palimpsest/imaging/scan.cpp": "void ScanFile::read_scan() {}\n"}
        pair = "First\n`ScanFile::read_scan()`\n(`imaging/scan.%s`)\n"
        self.assertEqual(self.run_on({**code, "docs/a.md": pair % "cpp"}), "")
        self.assertEqual(self.run_on({**code, "docs/a.md": pair % "hpp"}),
                         "docs/a.md:2: imaging/scan.hpp has no read_scan\n")

    def test_types_of_other_projects_have_their_package(self):
        self.assertEqual(self.run_on({"docs/a.md": "`sigpy.mri.app.SenseRecon`, `*Page*`\n"}), "")
        self.assertIn("SenseRecon", self.run_on({"docs/a.md": "`SenseRecon(y)`\n"}))

    def test_sources_exist(self):
        self.assertEqual(self.run_on({"docs/a.md": "`src/palimpsest/imaging/scan.hpp`\n"}), "")
        self.assertEqual(self.run_on({"docs/a.md": "`imaging/skan.hpp`, `build/a`\n"}),
                         "docs/a.md:1: there is no imaging/skan.hpp\n")

    def test_counts_are_those_of_the_page(self):
        for word in ("2", "two", "Two"):
            self.assertEqual(self.run_on({"docs/a.md": f"[{word} kinds](operators.md)\n"}), "")
        for word in ("3", "Thirty", "twenty-two", "twelve"):
            self.assertEqual(self.run_on({"docs/a.md": f"[{word} kinds](operators.md)\n"}),
                             f"docs/a.md:1: says {word} where operators.md has 2 entries\n")
        self.assertEqual(self.run_on({"docs/a.md": "[all kinds](operators.md)\n"}), "")

    def test_pages_are_listed(self):
        index = {"docs/index.md": "[a](howto/a.md#b), [operators](operators.md)\n", "docs/howto/a.md": ""}
        self.assertEqual(self.run_on(index), "")
        self.assertEqual(self.run_on({**index, "docs/howto/b.md": ""}),
                         "docs/howto/b.md: no link leads to it from docs/index.md or CONTRIBUTING.md\n")
        self.assertEqual(self.run_on({**index, "docs/howto/b.md": "", "CONTRIBUTING.md": "[b](docs/howto/b.md)\n"}), "")

    def test_the_cited_version_is_the_one_that_is_built(self):
        project = {"CMakeLists.txt": "project(palimpsest VERSION 0.2.0 LANGUAGES CXX)\n"}
        self.assertEqual(self.run_on({**project, "CITATION.cff": "title: a\nversion: 0.2.0\n"}), "")
        self.assertEqual(self.run_on({**project, "CITATION.cff": "version: 0.1.0\n"}),
                         "CITATION.cff: says version 0.1.0 where CMakeLists.txt has 0.2.0\n")
        self.assertIn("says version None", self.run_on(project))


if __name__ == "__main__":
    unittest.main()
