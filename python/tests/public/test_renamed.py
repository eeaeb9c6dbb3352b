# SPDX-License-Identifier: Apache-2.0
"""Names of earlier releases work, with a warning that says the new ones; the namespace shows what is used."""

import numpy as np
import pytest

import palimpsest as ps
from palimpsest._renamed import _ELSEWHERE, _NEW

A = ps.Dense(np.diag([1.0, 2.0]))
B = np.ones(2)
F = ps.Objective(A, terms=[ps.L1(0.1)])
KSPACE, MAPS = np.ones((2, 16, 16), "complex64"), np.ones((2, 16, 16), "complex64")
CALLS = {
    "plan_conjugate_gradients": (A, B), "plan_fista": (A, ps.L1(0.1), B), "plan_minimize": (F, B), "plan_svd": (A, 1),
    "plan_reconstruct": (KSPACE, MAPS), "plan_espirit": ((2, 32, 32),), "smallest_cg_budget": (A, B),
    "smallest_minimize_budget": (F, B), "weighted": (ps.L1(), 2.0), "scaled": (ps.L1(), 2.0),
    "translated": (ps.L1(), B), "plus_quadratic": (ps.L1(), 1.0), "with_unitary": (ps.L1(), ps.Identity("N")),
    "conjugate": (ps.L1(),), "moreau_envelope": (ps.L1(), 1.0), "on": (ps.L1(), "N", 0, 1, "N"),
    "stacked": ([ps.L1(), ps.L1()], "N", [1, 1], "N"),
}


@pytest.mark.parametrize("name", _NEW)
def test_an_old_name_works_with_a_warning(name):
    with pytest.warns(DeprecationWarning, match=f"palimpsest.{name} is now "):
        assert getattr(ps, name)(*CALLS[name]) is not None
    assert name not in dir(ps) and name not in ps.__all__


def test_the_old_word_for_iterations():
    with pytest.warns(DeprecationWarning, match="iterations is now called max_iterations"):
        old = ps.reconstruct(KSPACE, MAPS, iterations=3)
    assert np.array_equal(old.image, ps.reconstruct(KSPACE, MAPS, max_iterations=3).image)
    with pytest.raises(TypeError, match="got iterations, too"):
        ps.reconstruct(KSPACE, MAPS, iterations=3, max_iterations=3)


def test_constructors_by_a_letter_are_not_listed():
    for name in ("dvector", "fmatrix", "lscalars", "ztensor5", "brow", "cmatrices"):
        assert callable(getattr(ps, name)) and name not in dir(ps) and name not in ps.__all__
    assert {"scalar", "vector", "matrix", "tensor3", "cg", "plan", "Dense"} <= set(dir(ps))
    assert len(dir(ps)) < 420


@pytest.mark.parametrize("name, advice", [("T", "A.H is the adjoint"), ("dtype", "A.params"),
                                          ("todense", r"A.matrix\(\)"), ("matvec", "A @ x"), ("div", "lsqr"), ("eigs", "lanczos")])
def test_members_of_other_packages_say_what_to_use(name, advice):
    with pytest.raises(AttributeError, match=advice):
        getattr(A, name)


@pytest.mark.parametrize("name", _ELSEWHERE)
def test_names_of_other_packages_say_what_to_use(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Try ") as caught:
        getattr(ps, name)
    told = str(caught.value).partition("Try ")[2]
    words = [word.rstrip(",").split("(")[0] for word in told.split()]
    assert {word.split(".")[0] for word in words} & {"torch", *dir(ps)}, told


def test_a_matrix_and_a_division_say_what_to_use():
    with pytest.raises(TypeError, match=r"got numpy.ndarray, expected a NamedLinop. Try Dense\(a\)"):
        ps.cg(np.eye(2), B)
    with pytest.raises(TypeError, match=r"Try lsqr\(A, y\)"):
        A / B
