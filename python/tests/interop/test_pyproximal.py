# SPDX-License-Identifier: Apache-2.0
"""Proximal functions against PyProximal, and against closed forms and minimizers where it has none."""

import numpy as np
import pytest

import palimpsest as ps

pyproximal = pytest.importorskip("pyproximal")
pylops = pytest.importorskip("pylops")
optimize = pytest.importorskip("scipy.optimize")

RNG = np.random.default_rng(7)
SHAPE = (6, 8)
REAL = RNG.normal(size=SHAPE)
COMPLEX = REAL + 1j * RNG.normal(size=SHAPE)
CENTER = RNG.normal(size=SHAPE)
BAND = ps.Restrict("AB", {"A": slice(0, 2)}, sizes={"A": 6, "B": 8})
HAAR = ps.Wavelet("AB", "B", family="haar", levels=2)
PARTS = ps.Prox.stacked([ps.L1(0.4), ps.SquaredL2(0.7)], "A", [2, 4], "AB")


def restriction():
    return pylops.Restriction(SHAPE, np.arange(2), axis=0, dtype="float64")


# Our function, that of PyProximal, and the data for both.
PAIRS = {
    "L1": (lambda: ps.L1(0.4), lambda: pyproximal.L1(0.4), COMPLEX),
    "L1 weights": (
        lambda: ps.L1(0.4, weights=np.abs(CENTER)),
        lambda: pyproximal.L1(0.4 * np.abs(CENTER).ravel()),
        REAL,
    ),
    "L2": (lambda: ps.L2(0.8), lambda: pyproximal.Euclidean(0.8), COMPLEX),
    "SquaredL2": (lambda: ps.SquaredL2(0.6), lambda: pyproximal.L2(sigma=0.6), COMPLEX),
    "SquaredL2 center": (
        lambda: ps.SquaredL2(0.6, center=CENTER),
        lambda: pyproximal.L2(b=CENTER.ravel(), sigma=0.6),
        REAL,
    ),
    "L21": (lambda: ps.L21(0.5, "A", "AB"), lambda: pyproximal.L21(6, 0.5), REAL),
    "Nuclear": (lambda: ps.Nuclear(0.5, "A", "B", dims="AB"), lambda: pyproximal.Nuclear(SHAPE, 0.5), REAL),
    "Box": (lambda: ps.Box(-0.3, 0.9), lambda: pyproximal.Box(-0.3, 0.9), REAL),
    "NonNegative": (ps.NonNegative, lambda: pyproximal.Box(lower=0), REAL),
    "Ball": (lambda: ps.Ball(1.2), lambda: pyproximal.EuclideanBall(0, 1.2), COMPLEX),
    "Ball center": (
        lambda: ps.Ball(1.2, center=CENTER),
        lambda: pyproximal.EuclideanBall(CENTER.ravel(), 1.2),
        REAL,
    ),
    "Affine": (
        lambda: ps.Affine(BAND, CENTER[:2]),
        lambda: pyproximal.AffineSet(restriction(), CENTER[:2].ravel(), 50),
        REAL,
    ),
    "translated": (
        lambda: ps.L1(0.4).translated(CENTER),
        lambda: pyproximal.L1(0.4, g=CENTER.ravel()),
        REAL,
    ),
    "stacked": (
        lambda: PARTS,
        lambda: pyproximal.VStack([pyproximal.L1(0.4), pyproximal.L2(sigma=0.7)], nn=[16, 32]),
        REAL,
    ),
    "with_unitary": (
        lambda: ps.L1(0.4).with_unitary(ps.Fft(2, grid=("AB", "CD"))),
        lambda: pyproximal.Orthogonal(
            pyproximal.L1(0.4), pylops.signalprocessing.FFT2D(SHAPE, norm="ortho", dtype="complex128")
        ),
        COMPLEX,
    ),
    "weighted": (lambda: ps.L1(0.4).weighted(2.0), lambda: pyproximal.L1(0.8), COMPLEX),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("t", [0.1, 0.7, 3.0])
def test_the_same_as_pyproximal(name, t):
    make, theirs, v = PAIRS[name]
    g, reference = make(), theirs()
    expected = np.asarray(reference.prox(v.ravel().copy(), t)).reshape(SHAPE)
    np.testing.assert_allclose(g.prox(v, t), expected, rtol=1e-7, atol=1e-9)
    # By the prox of PyProximal and Moreau's identity: its own dual step of L1 compares complex numbers.
    dual = v.ravel() - t * np.asarray(reference.prox(v.ravel() / t, 1 / t))
    np.testing.assert_allclose(g.conjugate_prox(v, t), dual.reshape(SHAPE), rtol=1e-6, atol=1e-8)


VALUES = ["L1", "L2", "SquaredL2", "L21", "Nuclear", "translated", "weighted"]


@pytest.mark.parametrize("name", VALUES)
def test_values_are_the_same(name):
    make, theirs, v = PAIRS[name]
    # PyProximal takes roots of eigenvalues; those of zero eigenvalues are rounding errors.
    bound = 1e-7 if name == "Nuclear" else 1e-9
    assert make().value(v) == pytest.approx(float(theirs()(v.ravel())), rel=bound)


@pytest.mark.parametrize("t", [0.1, 0.7])
def test_total_variation(t):
    g = ps.TotalVariation(0.5, "AB", dims="AB", inner=5000, inner_tolerance=1e-12)
    theirs = pyproximal.TV(SHAPE, sigma=0.5, niter=5000, rtol=1e-14)
    expected = np.asarray(theirs.prox(REAL.ravel().copy(), t)).reshape(SHAPE)
    np.testing.assert_allclose(g.prox(REAL, t), expected, atol=1e-4)
    assert g.value(REAL) == pytest.approx(float(theirs(REAL.ravel())), rel=1e-9)


# The minimizer of each element by a search: PyProximal joins the two pieces at another point.
@pytest.mark.parametrize("t", [0.1, 0.7, 3.0])
def test_huber(t):
    g = ps.Huber(0.7, 0.4)

    def value(x):
        return 0.7 * (x**2 / 0.8 if abs(x) <= 0.4 else abs(x) - 0.2)

    for v in REAL.ravel()[:12]:
        found = optimize.minimize_scalar(
            lambda x, v=v: t * value(x) + (x - v) ** 2 / 2, bracket=(-4, 4), tol=1e-12
        )
        assert g.prox(np.array([v]), t)[0] == pytest.approx(found.x, abs=1e-6)


def soft(x, threshold):
    return x * np.maximum(1 - threshold / np.maximum(np.abs(x), 1e-300), 0)


@pytest.mark.parametrize("t", [0.1, 0.7, 3.0])
def test_closed_forms(t):
    v = COMPLEX
    np.testing.assert_allclose(ps.RealValued().prox(v, t), v.real + 0j)
    np.testing.assert_allclose(ps.ZeroProx().prox(v, t), v)
    W = np.array([HAAR(row) for row in np.eye(48).reshape(48, 6, 8)]).reshape(48, 48).T
    wavelets = ps.L1Wavelet(0.4, "B", family="haar", levels=2, dims="AB")
    expected = (W.T @ soft(W @ v.ravel(), 0.4 * t)).reshape(SHAPE)
    np.testing.assert_allclose(wavelets.prox(v, t), expected, atol=1e-12)
    scaled = ps.L1(0.4).scaled(-2.0)
    np.testing.assert_allclose(scaled.prox(v, t), soft(-2 * v, 1.6 * t) / -2, atol=1e-12)
    quadratic = ps.L1(0.4).plus_quadratic(0.8, CENTER)
    pulled = (v + 0.8 * t * CENTER) / (1 + 0.8 * t)
    np.testing.assert_allclose(quadratic.prox(v, t), soft(pulled, 0.4 * t / (1 + 0.8 * t)), atol=1e-12)
    envelope = ps.L1(0.4).moreau_envelope(0.6)
    step = t / (0.6 + t)
    expected = v + step * (soft(v, 0.4 * (0.6 + t)) - v)
    np.testing.assert_allclose(envelope.prox(v, t), expected, atol=1e-12)
    part = ps.L1(0.4).on_part("B", 1, 4, "AB")
    expected = v.copy()
    expected[:, 1:4] = soft(v[:, 1:4], 0.4 * t)
    np.testing.assert_allclose(part.prox(v, t), expected, atol=1e-12)
    blocks = ps.LocallyLowRank(0.3, {"A": 3}, "B", dims="AB")
    for rows in (slice(0, 3), slice(3, 6)):
        U, S, Vh = np.linalg.svd(v[rows], full_matrices=False)
        expected = U * np.maximum(S - 0.3 * t, 0) @ Vh
        np.testing.assert_allclose(blocks.prox(v, t)[rows], expected, atol=1e-12)
    dual = ps.L2(0.8).conjugate()
    size = np.linalg.norm(v)
    np.testing.assert_allclose(dual.prox(v, t), v * min(1, 0.8 / size), atol=1e-12)
