# SPDX-License-Identifier: Apache-2.0
"""Every op and every operator of C++ gives Python the bits that it gives C++."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import palimpsest as ps

pytestmark = pytest.mark.slow

PROGRAM = pathlib.Path(ps.__file__).parents[2] / "tests/contract/test_written_samples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not PROGRAM.is_file():
        pytest.skip("test_written_samples is not built")
    made = tmp_path_factory.mktemp("samples")
    subprocess.run([PROGRAM, "--gtest_brief=1"], check=True, env={**os.environ, "PALIMPSEST_SAMPLES": str(made)},
                   stdout=subprocess.DEVNULL)
    return made


def arrays(folder, pattern):
    """The arrays of a name and 0, 1, .."""
    found = []
    while (path := folder / pattern.format(len(found))).exists():
        found.append(np.load(path))
    return found


def assert_same_bits(got, expected, name):
    assert got.dtype == expected.dtype and got.shape == expected.shape, name
    # The bits of a NaN do not matter.
    assert np.array_equal(got, expected, equal_nan=got.dtype.kind in "fc"), name
    finite = np.isfinite(expected) if got.dtype.kind in "fc" else np.ones(expected.shape, bool)
    assert np.ascontiguousarray(got[finite]).tobytes() == np.ascontiguousarray(expected[finite]).tobytes(), name


def test_functions_of_every_op(folder):
    names = sorted(folder.glob("f*.pal"))
    assert len(names) > 300
    for path in names:
        f = ps.Function.load(str(path))
        results = f(*arrays(folder, path.stem + "_in{}.npy"))
        expected = arrays(folder, path.stem + "_out{}.npy")
        for got, wanted in zip(results if isinstance(results, list) else [results], expected, strict=True):
            assert_same_bits(got, wanted, repr(f) + f.dprint())


def test_every_operator(folder):
    ps.set_breakpoint_hook("sample", lambda name, direction, data: None)
    names = sorted(folder.glob("A*.pal"))
    assert len(names) > 100
    for path in names:
        A = ps.load(str(path))
        x, y, z = (np.load(folder / f"{path.stem}_{part}.npy") for part in "xyz")
        assert_same_bits(A(x), y, repr(A))
        assert_same_bits(A.H(y), z, repr(A))
        assert_same_bits(np.asarray(A(ps.asarray(x))), y, repr(A))
