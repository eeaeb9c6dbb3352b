# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds each kind of violation and says where."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_layers.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HASH_SPDX = "# SPDX-License-Identifier: Apache-2.0\n"

# A tree without violations: `memory` uses `base`, each with a public and an internal header.
CLEAN = {
    "src/palimpsest/CMakeLists.txt":
        HASH_SPDX + "palimpsest_layer(base LIBRARIES fmt)\n"
        "palimpsest_layer(memory LEVEL g\n  USES base  # the errors\n  LIBRARIES fmt)\n",
    "src/palimpsest/base/a.hpp": SPDX + "#pragma once\n#include <vector>\n",
    "src/palimpsest/base/a.cpp": SPDX + '#include "palimpsest/base/a.hpp"\n#include <png.h>\n',
    "src/palimpsest/base/inner.hpp": SPDX + "// Internal.\n#pragma once\n",
    "src/palimpsest/memory/m.hpp": SPDX + '#pragma once\n#include "palimpsest/base/a.hpp"\n',
    "src/palimpsest/cli/main.cpp": SPDX + "#include <palimpsest/palimpsest.hpp>\n",
    "tests/base/a_test.cpp": SPDX + '#include "palimpsest/base/inner.hpp"\n',
}


class CheckLayers(unittest.TestCase):
    def run_on(self, changes, *options):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **changes}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, TOOL, "--root", root, *options],
                                  capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.returncode, 1 if done.stdout else 0)
            return done.stdout

    def assert_found(self, changes, line):
        self.assertIn(line, self.run_on(changes))

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.run_on({}), "")

    def test_a_layer_may_not_include_one_below_it_in_the_table(self):
        self.assert_found(
            {"src/palimpsest/base/a.cpp": SPDX + '\n#include "palimpsest/memory/m.hpp"\n'},
            "src/palimpsest/base/a.cpp:3: base may not include 'palimpsest/memory/m.hpp'; "
            "it may use base")

    def test_a_layer_uses_only_what_stands_above_it_in_the_list(self):
        self.assert_found(
            {"src/palimpsest/CMakeLists.txt":
             HASH_SPDX + "palimpsest_layer(base USES memory)\npalimpsest_layer(memory)\n"},
            "base may not use memory, which does not stand above it")

    def test_includes_are_written_from_the_root(self):
        self.assert_found({"src/palimpsest/base/a.cpp": SPDX + '#include "inner.hpp"\n'},
                          "src/palimpsest/base/a.cpp:2: 'inner.hpp' is not written from the root")

    def test_a_public_header_includes_no_other_project(self):
        self.assert_found(
            {"src/palimpsest/base/a.hpp": SPDX + "#pragma once\n#include <fmt/format.h>\n"},
            "src/palimpsest/base/a.hpp:3: a public header includes 'fmt/format.h'")

    def test_a_public_header_includes_no_internal_one(self):
        self.assert_found(
            {"src/palimpsest/base/a.hpp":
             SPDX + '#pragma once\n#include "palimpsest/base/inner.hpp"\n'},
            "a public header includes 'palimpsest/base/inner.hpp', which is internal")

    def test_texts_of_the_library_name_no_option_of_the_command(self):
        text = SPDX + 'int n;\nconst char* k = "[--maps] got {}";\nint m = --n;  // "--n"\n'
        self.assert_found({"src/palimpsest/base/a.cpp": text},
                          "src/palimpsest/base/a.cpp:3: a text names --maps of the command")
        self.assertEqual(self.run_on({"src/palimpsest/cli/main.cpp": text}), "")

    def test_fields_in_texts_have_a_word_of_the_command(self):
        changes = {"src/palimpsest/base/a.cpp": SPDX + 'const char* k = "Try ScanOptions.slice";\n'}
        self.assert_found(changes, "src/palimpsest/base/a.cpp:2: src/palimpsest/cli/option_words.cpp "
                                   "has no word of the command for ScanOptions.slice")
        changes["src/palimpsest/cli/option_words.cpp"] = SPDX + '// {"ScanOptions.slice", "--slice"}\n'
        self.assertEqual(self.run_on(changes), "")

    def test_folders_are_not_too_full(self):
        files = {f"src/palimpsest/memory/room/m{i}.cpp": SPDX for i in range(41)}
        self.assert_found(files, "src/palimpsest/memory/room: 41 files, expected at most 40")

    def test_a_shortcut_leads_to_public_headers_only(self):
        found = self.run_on({"src/palimpsest/testing.hpp":
                             SPDX + '#pragma once\n#include "palimpsest/base/inner.hpp"\n'})
        self.assertIn("testing.hpp:3: 'palimpsest/base/inner.hpp' is no public header", found)
        self.assertEqual(
            self.run_on({"src/palimpsest/testing.hpp":
                         SPDX + '#pragma once\n#include "palimpsest/memory/m.hpp"\n',
                         "examples/e.cpp": SPDX + "#include <palimpsest/testing.hpp>\n"}), "")

    def test_command_examples_and_other_tests_use_public_headers_only(self):
        text = SPDX + '#include "palimpsest/base/inner.hpp"\n'
        for name in ("src/palimpsest/cli/main.cpp", "examples/e.cpp", "tests/contract/c_test.cpp",
                     "tests/memory/m_test.cpp"):
            self.assert_found({name: text}, f"{name}:2: 'palimpsest/base/inner.hpp' is internal")

    def test_the_collection_of_all_ops_names_every_public_header_of_them(self):
        tree = {"src/palimpsest/CMakeLists.txt": HASH_SPDX + "palimpsest_layer(base)\npalimpsest_layer(ops)\n",
                "src/palimpsest/memory/m.hpp": SPDX + "// Internal.\n#pragma once\n",
                "src/palimpsest/ops/x/one.hpp": SPDX + "#pragma once\n",
                "src/palimpsest/ops/x/inner.hpp": SPDX + "// Internal.\n#pragma once\n",
                "src/palimpsest/ops/registry.hpp": SPDX + "#pragma once\n"}
        name = "src/palimpsest/ops/ops.hpp"
        self.assert_found({**tree, name: SPDX + "#pragma once\n"},
                          f"{name}: does not include 'palimpsest/ops/x/one.hpp'")
        text = SPDX + '#pragma once\n#include "palimpsest/ops/x/one.hpp"\n'
        self.assertNotIn("does not include", self.run_on({**tree, name: text}))

    def test_an_adapted_library_has_one_adapter(self):
        self.assert_found({"src/palimpsest/memory/m.cpp": SPDX + "#include <png.h>\n"},
                          "libpng is included from 2 files, expected one")

    def test_locks_are_those_that_know_of_fork(self):
        text = SPDX + "#include <mutex>  // std::mutex\nstd::lock_guard<M> a;\nstd::shared_mutex b;\n"
        found = self.run_on({"src/palimpsest/memory/m.cpp": text})
        self.assertEqual(found, "src/palimpsest/memory/m.cpp:4: std::shared_mutex is not safe with "
                                "fork(). Try Mutex or CallLock\n")

    def test_types_outside_unnamed_namespaces_have_one_definition(self):
        one = SPDX + "#pragma once\nnamespace API palimpsest {\nclass Later;\nenum class E : int;\nstruct Twice {\n};\n}  // namespace palimpsest\n"
        own = SPDX + "namespace palimpsest {\nnamespace {\nclass Twice {};\n}  // namespace\nclass Later {};\n"
        self.assertEqual(self.run_on({"src/palimpsest/base/b.hpp": one, "src/palimpsest/memory/m.cpp": own}), "")
        self.assertEqual(
            self.run_on({"src/palimpsest/base/b.hpp": one, "src/palimpsest/memory/m.cpp": own + "using Twice = int;\n"}),
            "src/palimpsest/memory/m.cpp:7: palimpsest::Twice is defined in src/palimpsest/base/b.hpp:6 too; "
            "give one of them another name\n")

    def test_vectors_are_for_loops(self):
        self.assert_found({"src/palimpsest/memory/m.cpp": SPDX + "#include <hwy/highway.h>\n"},
                          "m.cpp:2: Highway is for copy and kernels of src/palimpsest only")

    def test_variables_of_the_environment_are_listed_and_shown(self):
        name = "src/palimpsest/base/a.cpp"
        changes = {name: SPDX + 'auto home = getenv("HOME"), log = getenv("PALIMPSEST_LOG");\n'}
        found = self.run_on(changes)
        for variable in ("HOME", "PALIMPSEST_LOG"):
            self.assertIn(f"{name}: reads {variable}, which the table of docs/howto/embed.md lacks", found)
        changes["docs/howto/embed.md"] = (
            "<!-- SPDX-License-Identifier: Apache-2.0 -->\n| `HOME` |\n| `PALIMPSEST_LOG` |\n")
        self.assertEqual(
            self.run_on(changes),
            f"{name}: reads PALIMPSEST_LOG, which src/palimpsest/cli/doctor.cpp does not show\n")
        changes["src/palimpsest/cli/doctor.cpp"] = SPDX + 'auto log = getenv("PALIMPSEST_LOG");\n'
        self.assertEqual(self.run_on(changes), "")

    def test_comments_begin_with_their_noun_or_verb(self):
        self.assert_found({"src/palimpsest/base/a.cpp": SPDX + "// One of two.\nint a();\n"},
                          "src/palimpsest/base/a.cpp:2: a comment begins with 'One', not with its noun")
        self.assert_found({"src/palimpsest/base/a.cpp": SPDX + "int a();  ///< As given.\n"},
                          "src/palimpsest/base/a.cpp:2: a comment begins with 'As', not with its noun")
        self.assertEqual(self.run_on({"src/palimpsest/base/a.cpp": SPDX + "// The sum.\n// As given.\n"}), "")

    def test_sources_of_tests_are_built(self):
        lists = "tests/base/CMakeLists.txt"
        self.assert_found({lists: HASH_SPDX + "palimpsest_test(test_base SOURCES b_test.cpp)\n"},
                          f"tests/base/a_test.cpp: no test program has it, see {lists}")
        for text in ("palimpsest_test(test_base SOURCES a_test.cpp)\n", "file(GLOB found *_test.cpp)\n"):
            self.assertEqual(self.run_on({lists: HASH_SPDX + text}), "")

    def test_every_file_names_its_licence(self):
        self.assert_found({"docs/page.md": "# A page\n"},
                          "docs/page.md: has no line 'SPDX-License-Identifier: Apache-2.0'")

    def test_headers_are_guarded_and_files_short(self):
        found = self.run_on({"src/palimpsest/base/inner.hpp": SPDX,
                             "tests/base/a_test.cpp": SPDX + "\n" * 800})
        self.assertIn("inner.hpp: a header without '#pragma once'", found)
        self.assertIn("a_test.cpp: 801 lines, expected at most 800", found)
        self.assert_found({"tests/base/a_test.cpp": SPDX + "// " + "x" * 98 + "\n"},
                          "a_test.cpp:2: 101 columns, expected at most 100")
        name = "src/palimpsest/base/loops-inl.hpp"
        self.assert_found({name: SPDX + "#pragma once\n"},
                          f"{name}: a header for each instruction set without a guard")
        self.assertEqual(self.run_on({name: SPDX + "#ifdef HWY_TARGET_TOGGLE\n#endif\n"}), "")


if __name__ == "__main__":
    unittest.main()
