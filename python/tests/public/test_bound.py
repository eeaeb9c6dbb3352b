# SPDX-License-Identifier: Apache-2.0
"""Every public function of the C++ headers is in the package, or has a reason in unbound.txt."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

import palimpsest as ps

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = ROOT / "src/palimpsest"
LAYERS = ("ops", "linop", "solve", "distributed", "imaging", "io")
REASONS = pathlib.Path(__file__).with_name("unbound.txt")

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="an installed package")


def public_functions():
    """Names as Python would have them, `ops.` before those of the builders."""
    spec = importlib.util.spec_from_file_location("headers", SOURCES / "python/headers.py")
    headers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(headers)
    names = set()
    for layer in LAYERS:
        for path in sorted((SOURCES / layer).rglob("*.hpp")):
            if any(line.startswith("// Internal") for line in path.read_text().splitlines()[:3]):
                continue
            names |= set(headers.Headers([path]).parameters)
    # Macros are not functions.
    return {name for name in names if not name.split(".")[-1].isupper()}


def reasons():
    """Pairs of a pattern and its reason."""
    found, reason = [], ""
    for line in REASONS.read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            assert reason, line
            found.append((line, reason))
    return found


def is_bound(name):
    if name.startswith("ops."):
        target = ps.ops
        for part in name.split(".")[1:]:
            target = getattr(target, part, None)
        return target is not None
    # Bound as a function, or as a member of the class of its first argument.
    return hasattr(ps, name) or any(hasattr(of, name) for of in (ps.NamedLinop, ps.Variable, ps.Tensor, ps.Plan))


def test_functions_are_bound_or_have_a_reason():
    names = public_functions()
    assert len(names) > 400
    unbound = {name for name in names if not is_bound(name)}
    patterns = [pattern for pattern, _ in reasons()]
    open_names = {name for name in unbound if not any(re.fullmatch(pattern, name) for pattern in patterns)}
    assert not open_names, "bind these, or say in unbound.txt why not"


def test_no_reason_is_left_over():
    unbound = {name for name in public_functions() if not is_bound(name)}
    for pattern, _ in reasons():
        for name in re.sub(r"^ops\\\.(?:inplace\\\.)?", "", pattern).strip("()").split("|"):
            assert any(found.split(".")[-1] == name for found in unbound), f"{name} is bound, or is not there"


@pytest.mark.parametrize("kind", ["operators", "solvers", "proximal functions"])
def test_registries_are_bound(kind):
    names = set(subprocess.run([sys.executable, "-c", "import palimpsest as ps\nfor name in "
                                f"ps._core._registered()[{kind!r}]: print(name)"], check=True,
                               capture_output=True, text=True).stdout.split())
    assert len(names) > 10
    assert {name for name in names if not hasattr(ps, name)} == UNBOUND[kind]


UNBOUND = {
    # The general form of A.N, and the container in which proximal functions are saved.
    "operators": {"Normal", "palimpsest.Prox"},
    "solvers": {"dense_svd"},  # used by the function svd
    # Reached by CustomProx, and by an option for random shifts.
    "proximal functions": {"Custom", "ShiftedL1Wavelet", "ShiftedLocallyLowRank"},
}
