# SPDX-License-Identifier: Apache-2.0
"""Functions, proximal functions, methods and apps of palimpsest.sigpy, beside SigPy where that is installed."""

import inspect

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.sigpy as sp

RNG = np.random.default_rng(7)


def random(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


X, V = random(6, 7), random(9)
POINTS = RNG.uniform(-3, 3, (9, 2))
SPOKES = sp.mri.radial((60, 32, 2), (32, 32))
IMAGE = sp.shepp_logan((32, 32))
MAPS = sp.mri.birdcage_maps((6, 32, 32))
MASK = (RNG.random((32, 32)) < 0.6) * 1.0
MASK[12:20, 12:20] = 1
KSPACE = MASK * sp.fft(MAPS * IMAGE, axes=(-1, -2))
QUIET = {"show_pbar": False, "max_iter": 10}


def regularized(o, **options):
    return o.app.LinearLeastSquares(o.linop.FFT((6, 7)), X, **QUIET, **options).run()


def method(alg):
    while not alg.done():
        alg.update()
    return alg.x


FUNCTIONS = {
    "fft": lambda o: o.fft(X), "fft along": lambda o: o.fft(X, norm=None, axes=(0,)),
    "fft of another size": lambda o: o.fft(X, oshape=(8, 5)),
    "fft not centred": lambda o: o.fft(X, oshape=(8, 9), center=False),
    "ifft": lambda o: o.ifft(X, norm=None), "ifft of another size": lambda o: o.ifft(X, (5, 8)),
    "nufft": lambda o: o.nufft(X, POINTS), "nufft_adjoint": lambda o: o.nufft_adjoint(V, POINTS, (6, 7)),
    "nufft_adjoint without a shape": lambda o: o.nufft_adjoint(V, POINTS),
    "estimate_shape": lambda o: np.array(o.estimate_shape(POINTS)),
    "interpolate": lambda o: o.interpolate(X, POINTS), "gridding": lambda o: o.gridding(V, POINTS, (6, 7)),
    "fwt": lambda o: o.fwt(X, wave_name="db2"), "iwt": lambda o: o.iwt(o.fwt(X, level=1), X.shape, None, level=1)
    if o is sp else o.iwt(o.fwt(X, level=1), X.shape, o.wavelet.get_wavelet_shape(X.shape, level=1)[1], level=1),
    "wavelet shape": lambda o: np.array(o.wavelet.get_wavelet_shape((30, 41), "db3")[0]),
    "convolve": lambda o: o.convolve(X, X[:2, :3]),
    "convolve_data_adjoint": lambda o: o.convolve_data_adjoint(X, X[:2, :3], (5, 5)),
    "convolve_filter_adjoint": lambda o: o.convolve_filter_adjoint(X, X[:3, :4], (4, 4)),
    "resize": lambda o: o.resize(X, (5, 8)), "resize adds axes": lambda o: o.resize(np.arange(3), (2, 4)),
    "flip": lambda o: o.flip(X, axes=(1,)), "circshift": lambda o: o.circshift(X, (2,), axes=(-1,)),
    "downsample": lambda o: o.downsample(X, (2, 3)), "upsample": lambda o: o.upsample(V.reshape(3, 3), (6, 7), (2, 3)),
    "blocks": lambda o: o.array_to_blocks(X, (2, 3), (1, 2)), "vec": lambda o: o.vec([X, V]),
    "split": lambda o: o.split(np.arange(7), [(2, 2), (3,)])[0], "rss": lambda o: o.rss(X, axes=(1,)),
    "dirac": lambda o: o.dirac((4, 5)), "triang": lambda o: o.triang((5, 6)), "hanning": lambda o: o.hanning((5, 6)),
    "randn": lambda o: o.randn((3,), dtype=complex, scale=2), "soft_thresh": lambda o: o.soft_thresh(0.5, X),
    "hard_thresh": lambda o: o.hard_thresh(1, X), "l1_proj": lambda o: o.l1_proj(5, X),
    "l2_proj": lambda o: o.l2_proj(1, X, axes=(0,)), "linf_proj": lambda o: o.linf_proj(0.5, X, bias=X[::-1]),
    "psd_proj": lambda o: o.psd_proj(X[:, :6]), "birdcage_maps": lambda o: o.mri.birdcage_maps((4, 6, 8)),
    "birdcage_maps of rings": lambda o: o.mri.birdcage_maps((12, 4, 6, 8)),
    "radial": lambda o: o.mri.radial((5, 6, 2), (8, 8), golden=False),
    "radial 3-D": lambda o: o.mri.radial((5, 6, 3), (8, 8, 6)),
    "pipe_menon_dcf": lambda o: o.mri.pipe_menon_dcf(SPOKES, max_iter=5, show_pbar=False),
    "kspace_precond": lambda o: o.mri.precond.kspace_precond(MAPS, weights=MASK, lamda=0.1),
    "kspace_precond of spokes": lambda o: o.mri.precond.kspace_precond(MAPS, coord=SPOKES),
    "circulant_precond": lambda o: o.mri.precond.circulant_precond(MAPS, weights=MASK, lamda=0.1),
    "circulant_precond of spokes": lambda o: o.mri.precond.circulant_precond(MAPS, coord=SPOKES),
    "get_cov": lambda o: o.mri.get_cov(X.copy()), "whiten": lambda o: o.mri.whiten(X, np.eye(6) + 0.1),
    "xpay": lambda o: [y := X.copy(), o.xpay(y, 2, X), y][2], "axpy": lambda o: [y := X.copy(), o.axpy(y, 2, X), y][2],
    "L1Reg": lambda o: o.prox.L1Reg((6, 7), 0.3)(0.7, X), "NoOp": lambda o: o.prox.NoOp((6, 7))(1, X),
    "L2Reg": lambda o: o.prox.L2Reg((6, 7), 0.3, y=X[::-1], proxh=o.prox.L1Reg((6, 7), 0.2))(0.7, X),
    "Conj": lambda o: o.prox.Conj(o.prox.L1Reg((6, 7), 0.3))(0.7, X),
    "L2Proj": lambda o: o.prox.L2Proj((6, 7), 0.3, y=X[::-1], axes=(1,))(1, X),
    "LInfProj": lambda o: o.prox.LInfProj((6, 7), 0.3)(1, X), "L1Proj": lambda o: o.prox.L1Proj((6, 7), 3)(1, X),
    "UnitaryTransform": lambda o: o.prox.UnitaryTransform(o.prox.L1Reg((6, 7), 0.3), o.linop.FFT((6, 7)))(0.7, X),
    "Stack": lambda o: o.prox.Stack([o.prox.L1Reg((2, 7), 0.3), o.prox.L2Reg((28,), 0.3)])(0.7, X.ravel()),
    "BoxConstraint": lambda o: o.prox.BoxConstraint((6, 7), -0.5, X.real**2)(1, X.real),
    "PsdProj": lambda o: o.prox.PsdProj((6, 6))(1, X[:, :6]),
}
APPS = {
    "least squares": lambda o: regularized(o, lamda=0.1, z=X[::-1]),
    "gradient, L1": lambda o: regularized(o, proxg=o.prox.L1Reg((6, 7), 0.1), alpha=0.9),
    "gradient, L1 and lamda": lambda o: regularized(o, proxg=o.prox.L1Reg((6, 7), 0.1), lamda=0.2, z=X[::-1]),
    "gradient, ball": lambda o: regularized(o, proxg=o.prox.L2Proj((6, 7), 0.5, y=X[::-1], axes=(1,)), alpha=0.7),
    "gradient, several": lambda o: regularized(o, proxg=o.prox.L2Reg((6, 7), 1, X[::-1], o.prox.L1Reg((6, 7), 0.1))),
    "gradient, LInf": lambda o: regularized(o, proxg=o.prox.LInfProj((6, 7), 0.3, bias=X[::-1]), alpha=0.7),
    "gradient, user": lambda o: regularized(o, proxg=lambda alpha, x: x / (1 + alpha), alpha=0.9, accelerate=False),
    "primal-dual": lambda o: regularized(o, proxg=o.prox.L1Reg((6, 7), 0.1), solver="PrimalDualHybridGradient"),
    "primal-dual, steps": lambda o: regularized(o, solver="PrimalDualHybridGradient", tau=np.full((6, 7), 0.5)),
    "ADMM": lambda o: regularized(o, proxg=o.prox.L1Reg((6, 7), 0.1), solver="ADMM", lamda=0.1),
    "phase retrieval": lambda o: method(o.alg.GerchbergSaxton(
        o.linop.MatMul((4, 1), X[:, :4]), np.abs(X[:, :1]), V[:4, None].copy(),
        max_iter=5 if o is sp else 10, lamb=0.1)),  # each iteration counts twice there
    "constrained": lambda o: o.app.L2ConstrainedMinimization(
        o.linop.FFT((6, 7)), X, o.prox.L1Reg((2, 6, 7), 1), 0.5, G=o.linop.FiniteDifference((6, 7)), **QUIET).run(),
    "SenseRecon": lambda o: o.mri.app.SenseRecon(KSPACE, MAPS, 0.01, coil_batch_size=2, **QUIET).run(),
    "SenseRecon, P": lambda o: o.mri.app.SenseRecon(KSPACE, MAPS, 0.01, P=o.linop.Multiply((32, 32), 2.0),
                                                    **QUIET).run(),
    "SenseRecon, weights": lambda o: o.mri.app.SenseRecon(KSPACE, MAPS, 0, weights=MASK * 0.5, **QUIET).run(),
    "SenseRecon, gradient": lambda o: o.mri.app.SenseRecon(KSPACE, MAPS, 0.1, solver="GradientMethod", **QUIET).run(),
    "SenseRecon, spokes": lambda o: o.mri.app.SenseRecon(sp.nufft(MAPS * IMAGE, SPOKES), MAPS, 0.1, coord=SPOKES,
                                                         **QUIET).run(),
    "L1WaveletRecon": lambda o: o.mri.app.L1WaveletRecon(KSPACE, MAPS, 0.005, **QUIET).run(),
    "TotalVariationRecon": lambda o: o.mri.app.TotalVariationRecon(KSPACE, MAPS, 0.005, **QUIET).run(),
}


# Errors of SigPy: a polynomial for I0, real arrays transformed in single precision.
ROUNDED = {**dict.fromkeys(("nufft", "nufft_adjoint", "nufft_adjoint without a shape", "pipe_menon_dcf",
                            "kspace_precond", "kspace_precond of spokes", "circulant_precond", "SenseRecon, spokes"),
                           1e-6),
           "circulant_precond of spokes": 1e-4}


def run(case, o):
    np.random.seed(3)
    return np.asarray(case(o))


@pytest.mark.parametrize("name", [*FUNCTIONS, *APPS])
def test_it_runs(name):
    assert np.isfinite(run({**FUNCTIONS, **APPS}[name], sp)).all()


@pytest.mark.sigpy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FUNCTIONS, *APPS])
def test_the_numbers_of_sigpy(name):
    sigpy = pytest.importorskip("sigpy")
    pytest.importorskip("sigpy.mri")
    case = {**FUNCTIONS, **APPS}[name]
    ours, theirs = run(case, sp), run(case, sigpy)
    assert ours.shape == theirs.shape and ours.dtype.kind == theirs.dtype.kind
    assert np.linalg.norm(ours - theirs) <= ROUNDED.get(name, 1e-11) * np.linalg.norm(theirs)


def positional(made):
    return [p.name for p in inspect.signature(made).parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]


@pytest.mark.sigpy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", ["linop", "prox", "alg", "app", "mri.linop", "mri.app", "mri.dcf", "mri.samp",
                                  "mri.sim", "mri.precond", "mri.util", "util", "thresh", "fourier", "interp", "conv",
                                  "block", "wavelet", "backend"])
def test_names_and_arguments_of_sigpy(path):
    theirs, ours = pytest.importorskip("sigpy.mri.app") and pytest.importorskip("sigpy"), sp
    for part in path.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    names = [name for name, value in vars(theirs).items()
             if not name.startswith("_") and callable(value) and value.__module__ == theirs.__name__]
    assert names
    for name in names:
        made = getattr(ours, name)
        if "Not mapped" not in made.__doc__:
            assert positional(made) == positional(getattr(theirs, name)), name


@pytest.mark.parametrize("make", [
    lambda p: p.L1Reg((6, 7), 0.3), lambda p: p.L1Reg((6, 7), np.full((6, 7), 0.3)), lambda p: p.NoOp((6, 7)),
    lambda p: p.L2Reg((6, 7), 0.3), lambda p: p.L2Reg((6, 7), 0.3, X[::-1], p.L1Reg((6, 7), 0.2)),
    lambda p: p.Conj(p.L1Reg((6, 7), 0.3)), lambda p: p.L2Proj((6, 7), 0.3), lambda p: p.LInfProj((6, 7), 0.3, X[::-1]),
    lambda p: p.L2Proj((6, 7), 0.3, X[::-1], axes=(1,)),
    lambda p: p.UnitaryTransform(p.L1Reg((6, 7), 0.3), sp.linop.FFT((6, 7))),
    lambda p: p.UnitaryTransform(p.L1Reg(sp.linop.Wavelet((6, 7)).oshape, 0.3), sp.linop.Wavelet((6, 7)))])
def test_a_planned_solver_gets_the_same_function(make):
    p = make(sp.prox)
    np.testing.assert_allclose(np.asarray(p.function().prox(X, 0.7)), p(0.7, X), rtol=1e-12, atol=1e-14)
    assert p.function(False).prox(X.astype("complex64"), 0.7).dtype == "complex64"


def test_box_constraints():
    box = sp.prox.BoxConstraint((4,), -1, 0.5)
    np.testing.assert_array_equal(box.function().prox(np.arange(-2.0, 2)), box(1, np.arange(-2.0, 2)))
    with pytest.raises(ps.NotSupported, match="CustomProx"):
        sp.prox.BoxConstraint((4,), -1, np.ones(4)).function()
    with pytest.raises(ValueError, match=r"\[L1Reg\] x: got the shape \(3,\), expected \(4,\)"):
        sp.prox.L1Reg((4,), 1)(1, np.ones(3))


def test_the_memory_is_known_before():
    for make in (sp.mri.app.SenseRecon, sp.mri.app.L1WaveletRecon):
        app = make(KSPACE, MAPS, 0.01, **QUIET)
        plan = app.plan()
        x = app.run()
        assert x is app.x and app.result.peak_bytes == plan.peak_bytes and app.result.iterations == 10
        assert len(app.time) == 11
    bounded = sp.mri.app.SenseRecon(KSPACE, MAPS, 0.01, **QUIET, budget=plan.total_bytes)
    assert np.linalg.norm(bounded.run()) > 0 and bounded.result.peak_bytes <= plan.total_bytes
    with pytest.raises(ps.BudgetError):
        sp.mri.app.SenseRecon(KSPACE, MAPS, 0.01, **QUIET, budget="1k").run()
    with pytest.raises(ps.NotSupported, match="palimpsest.minimize"):
        sp.mri.app.TotalVariationRecon(KSPACE, MAPS, 0.01, **QUIET, budget="1M")
    with pytest.raises(ps.NotSupported, match="palimpsest.plan"):
        sp.mri.app.TotalVariationRecon(KSPACE, MAPS, 0.01, **QUIET).plan()


def test_hooks_and_objectives_see_each_step():
    class Watched(sp.app.LinearLeastSquares):
        def _post_update(self):
            seen.append(self.alg.resid)

    seen = []
    A, y = sp.linop.MatMul((4, 1), np.diag([1.0, 2, 3, 4])), np.ones((4, 1))
    x = np.zeros((4, 1))
    Watched(A, y, x, show_pbar=False, max_iter=4).run()
    assert len(seen) == 4 and seen[-1] < 1e-10
    np.testing.assert_allclose(x[:, 0], 1 / np.arange(1, 5))
    app = sp.app.LinearLeastSquares(A, y, proxg=sp.prox.L1Reg((4, 1), 0.1), g=lambda x: 0.1 * np.abs(x).sum(),
                                    save_objective_values=True, show_pbar=False)
    app.run()
    assert len(app.objective_values) == 101 and app.objective_values[-1] < app.objective_values[0] == 2
    planned = sp.app.LinearLeastSquares(A, y, x := np.zeros((4, 1)), show_pbar=False, max_iter=4)
    assert planned.run() is x
    np.testing.assert_allclose(x[:, 0], 1 / np.arange(1, 5))
    assert sp.app.LinearLeastSquares(A, 1j * y, show_pbar=False).run().dtype == "complex128"


def test_mistakes_of_apps():
    A, y = sp.linop.Identity((3,)), np.ones(3)
    for options, text in (({"solver": "Newton"}, "expected one of ConjugateGradient"),
                          ({"solver": "ConjugateGradient", "proxg": sp.prox.NoOp((3,))}, "proxg: got one"),
                          ({"solver": "GradientMethod", "G": A}, "G: got")):
        with pytest.raises(ValueError, match=text):
            sp.app.LinearLeastSquares(A, y, show_pbar=False, **options)
    with pytest.raises(ValueError, match="g: got None"):
        sp.app.LinearLeastSquares(A, y, proxg=sp.prox.NoOp((3,)), save_objective_values=True)


def test_espirit():
    app = sp.mri.app.EspiritCalib(sp.fft(MAPS, axes=(-1, -2)), output_eigenvalue=True, show_pbar=False)
    maps, values = app.run()
    assert maps.shape == MAPS.shape and values.shape == (32, 32) and app.plan().peak_bytes > 0
    np.testing.assert_allclose(np.abs(maps)[:, 4:-4, 4:-4], np.abs(MAPS)[:, 4:-4, 4:-4], rtol=1e-2, atol=1e-2)
    assert np.abs(maps[0].imag).max() < 1e-6 and abs(values[4:-4, 4:-4] - 1).max() < 1e-2


def test_methods_on_functions_of_a_user():
    M = np.eye(5) + 0.1
    b, H = M.T @ np.arange(5.0), M.T @ M + 0.1 * np.eye(5)
    expected = np.linalg.solve(H, b)
    x = [np.zeros(5) for _ in range(4)]
    methods = [
        sp.alg.ConjugateGradient(lambda x: H @ x, b, x[0], P=lambda r: r / np.diag(H), max_iter=9, tol=1e-12),
        sp.alg.GradientMethod(lambda x: H @ x - b, x[1], 0.4, accelerate=True, max_iter=500),
        sp.alg.NewtonsMethod(lambda x: H @ x - b, lambda x: lambda g: np.linalg.solve(H, g), x[2], beta=0.5,
                             f=lambda x: x @ H @ x / 2 - b @ x),
        sp.alg.PrimalDualHybridGradient(lambda s, u: (u - s * np.arange(5.0)) / (1 + s), lambda t, x: x / (1 + 0.1 * t),
                                        lambda x: M @ x, lambda u: M.T @ u, x[3], np.zeros(5), 0.4, 1.0, max_iter=1000)]
    for method, found in zip(methods, x):
        sp.app.App(method, show_pbar=False).run()
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    turns = []
    sp.app.App(sp.alg.AltMin(lambda: turns.append(1), lambda: turns.append(2), 2), show_pbar=False).run()
    assert turns == [1, 2, 1, 2]
    largest = sp.app.MaxEig(sp.linop.MatMul((5, 1), H), max_iter=100, show_pbar=False).run()
    np.testing.assert_allclose(largest, np.linalg.eigvalsh(H)[-1], rtol=1e-6)


def test_sampling():
    pattern = sp.mri.poisson((60, 120), 6, seed=8)
    assert abs(pattern.size / pattern.sum() - 6) < 0.1 and pattern.dtype == "complex128"
    with sp.Device(-1) as nothing:
        assert nothing is None and sp.get_array_module(X) is np and sp.to_device(X, sp.cpu_device) is X
    signal = np.ones(10000) + 0.1 * sp.randn((10000,))
    assert abs(sp.monte_carlo_sure(lambda y: y, signal, 0.1) - 0.01) < 1e-3
