# SPDX-License-Identifier: Apache-2.0
"""The tests of torch-named-linops itself against palimpsest.torchlinops.

Its source distribution is loaded for them. Each test passes, or fails for a reason in original_tests.txt.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

HERE = pathlib.Path(__file__).parent
RELEASE = "torch-named-linops==0.8.3"


def reasons():
    found, reason = [], ""
    for line in (HERE / "original_tests.txt").read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append((line, reason))
    return found


@pytest.mark.slow
@pytest.mark.torch
def test_each_passes_or_has_a_reason(tmp_path):
    pytest.importorskip("torch")
    loaded = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:",
                             "--dest", str(tmp_path), RELEASE], capture_output=True, text=True)
    archives = list(tmp_path.glob("*.tar.gz"))
    if not archives:
        pytest.skip("no package index: " + loaded.stderr[-200:])
    with tarfile.open(archives[0]) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    outcomes = tmp_path / "outcomes"
    environment = {**os.environ, "ORIGINAL_SOURCES": str(folder / "src"), "ORIGINAL_OUTCOMES": str(outcomes),
                   "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "original_names", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(folder), "tests", "src/torchlinops/alg/tests", "src/torchlinops/utils/tests",
         "--import-mode=importlib", "-W", "ignore", "--continue-on-collection-errors"],
        cwd=folder, capture_output=True, text=True, env=environment, timeout=900)
    assert outcomes.exists(), run.stdout[-2000:] + run.stderr[-2000:]
    results = [json.loads(line) for line in outcomes.read_text().splitlines()]
    assert sum(outcome == "passed" for _, outcome, _ in results) >= 441

    counts, without = collections.Counter(), []
    for name, outcome, crash in results:
        if outcome == "failed":
            reason = next((reason for pattern, reason in reasons() if re.search(pattern, crash)), None)
            counts[reason] += 1
            if reason is None:
                without.append((name, crash.splitlines()[0]))
    assert not without
    assert set(counts) == {reason for _, reason in reasons()}, "a reason that is no more"
