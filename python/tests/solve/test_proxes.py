# SPDX-License-Identifier: Apache-2.0
"""Proximal functions: no point near the prox has a smaller objective."""

import pickle

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(4)
V = RNG.normal(size=(8, 8))
BAND = ps.Restrict("AB", {"A": slice(0, 2)}, sizes={"A": 8, "B": 8})

PROXES = {
    "L1": lambda: ps.L1(0.3), "L2": lambda: ps.L2(0.3), "L21": lambda: ps.L21(0.3, "A", "AB"),
    "SquaredL2": lambda: ps.SquaredL2(0.3, center=np.ones((8, 8))), "Huber": lambda: ps.Huber(0.3, 0.5),
    "ZeroProx": ps.ZeroProx, "Box": lambda: ps.Box(-0.5, 0.5), "NonNegative": ps.NonNegative,
    "RealValued": ps.RealValued, "Ball": lambda: ps.Ball(2.0),
    "Affine": lambda: ps.Affine(BAND, np.zeros((2, 8))),
    "TotalVariation": lambda: ps.TotalVariation(0.2, "AB", dims="AB", inner=500, inner_tolerance=1e-10),
    "L1Wavelet": lambda: ps.L1Wavelet(0.3, "AB", dims="AB", levels=2),
    "Nuclear": lambda: ps.Nuclear(0.3, "A", "B", dims="AB"),
    "LocallyLowRank": lambda: ps.LocallyLowRank(0.3, {"A": 4}, "B", dims="AB"),
    "weighted": lambda: ps.L1(0.3).weighted(2.0), "scaled": lambda: ps.L1(0.3).scaled(-2.0),
    "translated": lambda: ps.L1(0.3).translated(np.ones((8, 8))),
    "plus_quadratic": lambda: ps.L1(0.3).plus_quadratic(0.5),
    "L1Wavelet levels": lambda: ps.L1Wavelet(0.3, "AB", dims="AB", levels=1, level_weights=[0.0, 2.0]),
    "stacked": lambda: ps.Prox.stacked([ps.L1(0.3), ps.SquaredL2(0.7)], "A", [3, 5], "AB"),
    "on": lambda: ps.L1(0.3).on_part("B", 1, 4, "AB"),
    "CustomProx": lambda: ps.CustomProx(lambda v, t: v / (1 + t), lambda x: ps.ops.sum(x**2) / 2),
    "moreau_envelope": lambda: ps.L1(0.3).moreau_envelope(0.5),
}


@pytest.mark.parametrize("name", PROXES)
def test_no_point_near_the_prox_is_better(name):
    g, t = PROXES[name](), 0.7
    x = g.prox(V, t)

    def objective(u):
        return t * g.value(u) + 0.5 * np.sum((u - V) ** 2)

    best = objective(x)
    assert np.isfinite(best)
    for scale in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            assert objective(x + scale * RNG.normal(size=x.shape)) >= best - 1e-9 * (1 + abs(best))
        assert objective(x + scale * (V - x)) >= best - 1e-9 * (1 + abs(best))


@pytest.mark.parametrize("name", set(PROXES) - {"moreau_envelope"})
def test_moreau(name):
    g, s = PROXES[name](), 0.7
    u = V
    np.testing.assert_allclose(g.conjugate_prox(u, s), u - s * g.prox(u / s, 1 / s), atol=1e-5)


def test_kinds_weights_and_errors():
    assert isinstance(ps.L1(1.0).prox(ps.asarray(V)), ps.Tensor)
    assert ps.L1(1.0).prox([1, 3]).tolist() == [0, 2] and ps.L1(1.0)([1, 3]) == 4
    weighted = ps.L1(1.0, weights=np.array([0.0, 1.0]))
    assert weighted.prox(np.array([3.0, 3.0])).tolist() == [3, 2]
    lam = ps.Parameter(np.array(1.0))
    g = ps.L1(lam)
    assert g.prox(np.array([3.0])).tolist() == [2]
    lam.set_value(np.array(2.0))
    assert g.prox(np.array([3.0])).tolist() == [1]
    with pytest.raises(ValueError, match="lambda"):
        ps.L1(-1.0)
    with pytest.raises(ValueError, match="'none', 'random'"):
        ps.L1Wavelet(1.0, "AB", shift="often")
    with pytest.raises(TypeError, match="Term"):
        ps.Objective(ps.Identity("N"), terms=[3])


def test_directions_of_differences():
    v = np.arange(12.0).reshape(3, 4) ** 2
    forward, backward = (
        ps.TotalVariation(1.0, "AB", direction=d).value(v) for d in ("forward", "backward")
    )
    assert forward != backward
    f, b = (
        ps.minimize(ps.Objective(ps.Identity("AB"), terms=[ps.tv_term(1.0, "AB", direction=d)]), v)
        for d in ("forward", "backward")
    )
    assert not np.array_equal(f.x, b.x)
    ps.tgv_objective(ps.Identity("AB"), 1.0, "AB", direction="backward")
    with pytest.raises(ValueError, match="'forward', 'backward'"):
        ps.tv_term(1.0, "AB", direction="up")


@pytest.mark.parametrize("name", ["L1", "Box", "TotalVariation", "stacked"])
def test_pickles(name):
    g = PROXES[name]()
    again = pickle.loads(pickle.dumps(g))
    np.testing.assert_array_equal(again.prox(V, 0.7), g.prox(V, 0.7))


def test_laws():
    assert ps.check_prox(ps.L1(0.3)) == []
    shifted = ps.CustomProx(lambda v, t: v + 1, lambda x: ps.ops.sum(ps.ops.abs(x)))
    assert ps.check_prox(shifted) != []


def test_functions_of_a_user():
    with pytest.raises(ps.FormatError, match="closure"):
        pickle.dumps(PROXES["CustomProx"]())
    with pytest.raises(TypeError, match="CustomProx.*got int for prox"):
        ps.CustomProx(3)

    def fails(v, t):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ps.CustomProx(fails).prox(V)
    A = ps.Identity("AB")
    found = ps.fista(A, PROXES["CustomProx"](), V, max_iterations=200).x
    np.testing.assert_allclose(found, V / 2, atol=1e-4)
