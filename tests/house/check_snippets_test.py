# SPDX-License-Identifier: Apache-2.0
"""tools/check_snippets.py runs what a page shows and notices when the page is wrong."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_snippets.py"
# Replaces the compiler: its program prints the source's lines that begin with //.
COMPILER = """#!/bin/sh
for word in "$@"; do
  case $word in *snippet.cpp) source=$word ;; esac
done
grep -q broken "$source" && { echo 'error: broken' >&2; exit 1; }
{ echo '#!/bin/sh'; grep '^//' "$source" | sed 's/.*/echo "&"/'; } >"${source%.cpp}"
chmod +x "${source%.cpp}"
"""


class CheckSnippets(unittest.TestCase):
    def run_on(self, page):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in (("README.md", page), ("tests/e.cpp", "{\n  one();\n\n  two();\n}\n"),
                               ("docs/index.md", "# Nothing\n"), ("compiler", COMPILER)):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            (root / "compiler").chmod(0o755)
            done = subprocess.run(
                [sys.executable, TOOL, "--root", root, "--build-dir", root / "build", "--compiler",
                 root / "compiler"], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.returncode, 0 if " 0 wrong" in done.stdout else 1)
            return done.stdout

    def test_a_program_must_print_what_the_page_says(self):
        page = "```cpp\n// a 1 b\n// c\nint main() {}\n```\nprints\n```text\n%s\n```\n"
        self.assertIn("1 blocks on 2 pages, 0 wrong", self.run_on(page % "// a 1 b\n// c"))
        self.assertIn("0 wrong", self.run_on(page % "// a ... b\n..."))
        self.assertIn("README.md:1: it printed", self.run_on(page % "// a 2 b\n// c"))

    def test_a_program_must_compile(self):
        self.assertIn("README.md:2: it does not compile\nerror: broken",
                      self.run_on("\n```cpp\nint main() { broken }\n```\n"))

    def test_other_code_must_be_an_excerpt(self):
        self.assertIn("0 wrong", self.run_on("```cpp\none();\ntwo();\n```\n"))
        self.assertIn("it is no excerpt", self.run_on("```cpp\none();\nthree();\n```\n"))

    def test_shell_blocks_run_or_say_why_not(self):
        self.assertIn("0 wrong", self.run_on("<!-- run -->\n```sh\necho yes\n```\n```text\nyes\n```\n"))
        self.assertIn("exit code 3", self.run_on("<!-- run -->\n```sh\nexit 3\n```\n"))
        self.assertIn("0 wrong", self.run_on("<!-- not run: slow -->\n```sh\nexit 3\n```\n"))
        self.assertIn("mark it with", self.run_on("```sh\nexit 3\n```\n"))

    def test_a_shell_block_may_go_on_where_the_one_above_ended(self):
        page = "<!-- run -->\n```sh\necho yes > a; echo no\n```\n\n<!-- run after the above -->\n```sh\ncat a\n```\n```text\n%s\n```\n"
        self.assertIn("0 wrong", self.run_on(page % "yes"))
        self.assertIn("README.md:7: it printed\nyes", self.run_on(page % "no"))
        self.assertIn("README.md:2: there is no block above", self.run_on("<!-- run after the above -->\n```sh\ntrue\n```\n"))

    def test_columns_of_a_table_are_programs(self):
        page = ("| task | C++ | Python | command |\n|---|---|---|---|\n| one | `// 1` | `1` | `echo a > b` |\n"
                "| two | `// 2%s` | `2` | `cat b \\| grep %s` |\n")
        self.assertIn("2 blocks on 2 pages, 0 wrong", self.run_on(page % ("", "a")))
        self.assertIn("README.md:1: it does not compile", self.run_on(page % (" broken", "a")))
        self.assertIn("README.md:1: exit code 1", self.run_on(page % ("", "c")))

    def test_a_block_names_its_language(self):
        self.assertIn("names no language", self.run_on("```\none();\n```\n"))

    def test_links_between_files_lead_somewhere(self):
        self.assertIn("0 wrong", self.run_on("[a](docs/index.md#top), [b](https://example.org)\n"))
        self.assertIn("README.md:2: a link to 'docs/gone.md'", self.run_on("\n[a](docs/gone.md)\n"))


if __name__ == "__main__":
    unittest.main()
