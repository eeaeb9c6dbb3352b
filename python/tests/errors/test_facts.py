# SPDX-License-Identifier: Apache-2.0
"""Classes of errors, and the facts that they carry."""

import numpy as np
import pytest

import palimpsest as ps

MAPS = np.ones((8, 16, 16), "complex64")
A = ps.Dense(MAPS, "C Nx Ny, Nx Ny -> C Nx Ny") | ps.Fft(2, batch="C")


def test_a_shape_error_is_caught_by_its_classes():
    x = ps.dmatrix("x")
    f = ps.function([x], 2 * x)
    for kind in (ValueError, ps.Error, ps.ShapeError):
        with pytest.raises(kind, match=r"'x'.*got \(3,\), expected float64 \(\?, \?\)") as raised:
            f(np.ones(3))
    assert (raised.value.op, raised.value.got, raised.value.expected) == (
        "function argument 0 'x'", "(3,)", "float64 (?, ?)")


def test_axes_are_numbers():
    x, y = ps.dvectors("x", "y")
    with pytest.raises(ps.ShapeError) as raised:
        ps.function([x, y], x + y)([1.0], [1.0, 2.0, 3.0][:2] + [4.0])
    assert raised.value.axis == 0 and raised.value.op == "Add"


def test_budgets_that_do():
    image = np.ones((16, 16), "complex64")
    with pytest.raises(MemoryError) as raised:
        ps.split_to_budget(A, image, "1k")
    error = raised.value
    assert isinstance(error, ps.BudgetError) and error.smallest_bytes > 1000
    assert error.sizes == {} or set(error.sizes) <= {"C", "Nx", "Ny"}
    split = ps.split_to_budget(A, image, error.smallest_bytes)
    assert split.peak_bytes <= error.smallest_bytes
    assert {name: size for name, size in split.sizes.items() if size} == error.sizes
    with pytest.raises(ps.BudgetError):
        ps.split_to_budget(A, image, error.smallest_bytes - 1)

    b = A.N(image)
    with pytest.raises(ps.BudgetError) as raised:
        ps.conjugate_gradients(A.N, b, budget="1k")
    assert ps.plan(ps.cg, A.N, b, budget=raised.value.smallest_bytes).peak_bytes > 0


def test_facts_that_are_not_there():
    error = ps.Error("no form")
    assert (error.op, error.axis, error.got, error.expected) == (None, None, None, None)
    assert (ps.BudgetError("no form").smallest_bytes, ps.BudgetError("").sizes) == (None, {})
