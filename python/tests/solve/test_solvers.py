# SPDX-License-Identifier: Apache-2.0
"""Solvers from Python: answers, announced memory, callbacks, budgets, Ctrl-C."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(3)
W = RNG.normal(size=(30, 20)) + 1j * RNG.normal(size=(30, 20))
A = ps.Dense(W, "MN,N->M")
B = RNG.normal(size=30) + 1j * RNG.normal(size=30)
LEAST_SQUARES = np.linalg.lstsq(W, B, rcond=None)[0]


@pytest.mark.parametrize("solve", [ps.cg_normal, ps.cgls, ps.lsqr, ps.lsmr])
def test_least_squares(solve):
    options = {} if solve in (ps.lsqr, ps.lsmr) else {"tolerance": 1e-12}
    if not options:
        options = {"atol": 1e-14, "btol": 1e-14}
    r = solve(A, B, max_iterations=200, **options)
    np.testing.assert_allclose(r.x, LEAST_SQUARES, rtol=1e-8)
    assert isinstance(r.x, np.ndarray) and r.iterations == len(r.history) > 0


@pytest.mark.parametrize("solve", [ps.conjugate_gradients, ps.minres, ps.gmres, ps.bicgstab])
def test_square_systems(solve):
    b = W.conj().T @ B
    r = solve(A.N, b, tolerance=1e-10, max_iterations=200)
    assert r.converged and r.status == "converged"
    np.testing.assert_allclose(r.x, LEAST_SQUARES, rtol=1e-6)
    assert (np.diff(r.history.iteration) == 1).all() and r.history.residual[-1] <= 1e-9
    assert r.applications["A"] >= r.iterations


def test_kinds_and_starts():
    b = ps.asarray(W.conj().T @ B)
    r = ps.conjugate_gradients(A.N, b, x0=LEAST_SQUARES)
    assert isinstance(r.x, ps.Tensor) and r.iterations <= 1
    assert ps.conjugate_gradients(A.N, np.zeros(20, complex)).x.tolist() == [0] * 20
    D = ps.Diagonal(np.array([1.0, 2.0, 3.0]), "N")
    for of_list, of_array in ((D, D), (D.to("float32"), D)):
        x = ps.conjugate_gradients(of_list, [1, 2, 3], x0=[1, 1, 0] if of_list is D else None).x
        np.testing.assert_allclose(x, ps.conjugate_gradients(of_array, np.array([1.0, 2, 3])).x, rtol=1e-6)
        assert x.dtype == of_list.weight.dtype
    assert ps.power_method(D, [1, 1, 1])[0] > 2.9
    with pytest.raises(TypeError, match=r"\[conjugate_gradients\] b: got None, expected ArrayLike"):
        ps.conjugate_gradients(D, None)


def test_announced_memory_is_measured_memory():
    b = W.conj().T @ B
    plan = ps.plan(ps.cg, A.N, b)
    for data in (b, ps.asarray(b)):
        with ps.MemoryScope() as m:
            r = ps.conjugate_gradients(A.N, data)
        assert m.peak_bytes == plan.peak_bytes == r.peak_bytes == r.plan.peak_bytes
        assert r.plan.state_bytes == plan.state_bytes and r.plan.step.peak_bytes == plan.step.peak_bytes
        assert pickle.loads(pickle.dumps(r)).plan is None
        del r
    assert str(plan).startswith(f"peak {plan.peak_bytes} bytes\n  state: {plan.state_bytes} bytes")
    assert plan.to_svg().startswith("<svg") and plan.total_bytes == plan.peak_bytes + plan.operator_bytes
    assert plan.setup_bytes >= 0 == plan.tile_bytes == plan.streamed_bytes
    assert ps.plan(ps.svd, A, 2).peak_bytes > 0
    f = ps.Objective(A, quadratics=[ps.Quadratic(0.1)])
    least = ps.smallest_budget(ps.minimize, f, B)
    assert ps.minimize(f, B, budget=least).plan.total_bytes <= least
    seen = []
    note = lambda info: seen.append((info.seconds_left, info.numbers))  # noqa: E731
    ps.conjugate_gradients(A.N, b, callback=note, time_limit_s=9e9)
    assert all(8e9 < left < 9e9 and len(numbers) == 4 for left, numbers in seen)
    for r in (ps.cg_normal(A, B), ps.minimize(ps.Objective(A, quadratics=[ps.Quadratic(0.1)]), B),
              ps.conjugate_gradients(ps.Diagonal(np.ones((3, 2)), "SN"), np.ones((3, 2)), batch="S")):
        assert r.plan.peak_bytes == r.peak_bytes > 0
    with ps.CopyStats() as copies:
        ps.conjugate_gradients(A.N, b)
    assert copies.import_copies == 0


def test_budgets():
    F = ps.Chain(ps.Repeat({"C": 8}, "NxNy", "CNxNy"), ps.Fft(2, batch="C"))
    b = np.ones((64, 64), "complex64")
    smallest = ps.smallest_budget(ps.cg, F.N, b)
    whole = ps.plan(ps.cg, F.N, b)
    assert ps.conjugate_gradients(F.N, b, budget=whole.total_bytes).converged
    assert smallest <= whole.total_bytes
    with pytest.raises(ps.BudgetError):
        ps.conjugate_gradients(F.N, b, budget="1k")
    with pytest.raises(MemoryError):
        ps.conjugate_gradients(F.N, b, budget="1k")


def test_sparsity_and_total_variation():
    kernel = np.ones(5) / 5
    C = ps.Convolution(kernel, grid="N", batch=())
    x = np.zeros(64)
    x[20:40] = 1
    b = C(x)
    r = ps.minimize(ps.Objective(C, terms=[ps.tv_term(1e-3, "N")]), b, max_iterations=2000)
    assert np.abs(r.x - x).max() < 0.1
    s = ps.fista(ps.Identity("N"), ps.L1(0.5), np.array([3.0, -0.2, 1.0]), L=1.0, tolerance=1e-12)
    np.testing.assert_allclose(s.x, [2.5, 0, 0.5], atol=1e-9)
    q = ps.minimize(ps.Objective(ps.Identity("N"), quadratics=[ps.Quadratic(1.0)]), np.ones(3))
    np.testing.assert_allclose(q.x, 0.5 * np.ones(3))
    h = ps.minimize(ps.Objective(ps.Identity("N"), h=ps.NonNegative()), np.array([-1.0, 2.0]), L=1.0)
    np.testing.assert_allclose(h.x, [0, 2], atol=1e-5)
    assert ps.L1(0.5).prox(np.array([1.0, -2.0]), 1.0).tolist() == [0.5, -1.5]
    assert ps.L1(2.0)(np.array([1.0, -2.0])) == 6 and "L1" in repr(ps.L1(2.0))


def test_spectra():
    u, s, vh = ps.svd(A, 3)
    np.testing.assert_allclose(s, np.linalg.svd(W)[1][:3], rtol=1e-5)
    assert abs(ps.operator_norm2(A, (complex, (20,))) / np.linalg.norm(W, 2) ** 2 - 1) < 0.1
    value, v = ps.power_method(A.N, np.ones(20, complex), max_iterations=2000)
    np.testing.assert_allclose(value, np.linalg.norm(W, 2) ** 2, rtol=1e-3)
    value, v = ps.power_method(A.N, max_iterations=2000, tolerance=1e-9)
    np.testing.assert_allclose([value, np.linalg.norm(v)], [np.linalg.norm(W, 2) ** 2, 1], rtol=1e-3)
    assert ps.power_method(A.N, None, seed=1)[1].shape == (20,)
    with pytest.raises(ps.ShapeError, match="unknown"):
        ps.power_method(ps.Identity("N"))


def test_options_of_steps():
    F = ps.Dense(RNG.normal(size=(12, 8)), "MN,N->M")
    b = RNG.normal(size=12)
    best = ps.fista(F, ps.L1(0.3), b, tolerance=1e-12, max_iterations=20000).x
    for options in ({"monotone": True}, {"backtrack": True, "L": 1e-2}):
        r = ps.fista(F, ps.L1(0.3), b, tolerance=1e-10, max_iterations=20000, **options)
        np.testing.assert_allclose(r.x, best, atol=1e-6)
        objective = r.history.objective[-1]
        assert objective == pytest.approx(0.5 * np.sum((F(r.x) - b) ** 2) + 0.3 * np.abs(r.x).sum())
    f = ps.Objective(F, terms=[ps.Term(ps.L1(0.3), 2 * ps.Identity("N"))])
    r = ps.minimize(f, b, adapt=True, balance=100.0, tolerance=1e-8, max_iterations=20000)
    s = ps.pdhg(ps.SquaredL2(1.0), f, b, adapt=True, ratio=100.0, tolerance=1e-7, max_iterations=20000)
    assert r.converged and s.converged
    np.testing.assert_allclose(r.x, s.x, atol=1e-4)


def test_total_generalized_variation():
    ramp = 0.25 * np.arange(24)
    f = ps.tgv_objective(ps.Identity("N"), 1.0, "N", alpha0=3.0)
    u = ps.minimize(f, ramp, max_iterations=5000).x
    assert u.shape == (2, 24)
    tv = ps.minimize(ps.Objective(ps.Identity("N"), terms=[ps.tv_term(1.0, "N")]), ramp, max_iterations=5000).x
    assert np.linalg.norm(u[0] - ramp) < 0.7 * np.linalg.norm(tv - ramp)


def test_ritz_vectors():
    F = ps.Dense(RNG.normal(size=(9, 6)), "MN,N->M").N
    values, vectors = ps.lanczos(F, np.ones(6), steps=6, tolerance=0.0, vectors=True)
    for value, v in zip(values, vectors, strict=True):
        np.testing.assert_allclose(F(v), value * v, atol=1e-8)
    assert ps.lanczos(F, np.ones(6), which="smallest", steps=6, tolerance=0.0) == values
    with pytest.raises(ValueError, match="'largest', 'smallest'"):
        ps.lanczos(F, np.ones(6), which="middle")


def test_spectra_of_operators_that_are_not_finite():
    D = ps.Diagonal(np.full(3, np.nan), "N")
    for find in (
        lambda: ps.power_method(D, np.ones(3)),
        lambda: ps.svd(D, 1),
        lambda: ps.lanczos(D, np.ones(3)),
        lambda: ps.operator_norm2(D, np.ones(3)),
    ):
        with pytest.raises(ValueError, match="Diagonal"):
            find()


def test_power_method_of_a_batch():
    D = ps.Diagonal(np.array([[1.0, 2.0], [5.0, 10.0]]), "S N")
    values, v = ps.power_method(D, np.ones((2, 2)), batch="S", tolerance=1e-9)
    np.testing.assert_allclose(values, [2, 10], rtol=1e-6)
    assert v.shape == (2, 2)


def test_callbacks():
    seen = []

    def watch(info):
        seen.append((info.iteration, info.x.tolist()))
        return info.iteration < 3

    r = ps.conjugate_gradients(A.N, W.conj().T @ B, callback=watch)
    assert r.status == "stopped" and [i for i, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == r.x.tolist() and seen[0][1] != seen[1][1]
    infos = []
    ps.conjugate_gradients(A.N, W.conj().T @ B, callback=infos.append)
    with pytest.raises(ps.StateError):
        infos[0].iteration

    for stop in (np.False_, 0, np.array(0)):
        r = ps.conjugate_gradients(A.N, W.conj().T @ B, callback=lambda info, stop=stop: stop)
        assert r.status == "stopped" and r.iterations == 1

    class Mine(Exception):
        pass

    def fail(info):
        raise Mine("mine")

    with pytest.raises(Mine):
        ps.conjugate_gradients(A.N, W.conj().T @ B, callback=fail)


def test_options_that_there_are_not():
    with pytest.raises(TypeError, match="max_iterations"):
        ps.conjugate_gradients(A.N, B[:20], max_iteration=3)
    with pytest.raises(TypeError, match="number"):
        ps.conjugate_gradients(A.N, B[:20], tolerance="small")
    with pytest.raises(ValueError, match="got -1, expected an integer from 0"):
        ps.conjugate_gradients(A.N, B[:20], seed=-1)
    with pytest.raises(ps.ShapeError):
        ps.conjugate_gradients(A.N, B)
    with pytest.raises(ps.ShapeError, match="Mismatched"):
        ps.conjugate_gradients(A, B)


def test_ctrl_c_in_a_solve():
    big = ps.Fft(2, batch=()).N + ps.Fft(2, batch=()).N
    b = np.random.default_rng(0).normal(size=(256, 256)) + 0j
    slow = ps.Chain(ps.Fft(2), ps.Diagonal(np.linspace(1, 1e6, 65536).reshape(256, 256), "KxKy"))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        ps.conjugate_gradients(slow.N, b, max_iterations=10**7, tolerance=0.0)
    result = raised.value.result
    assert result.status == "stopped" and result.iterations > 0
    assert isinstance(result.x, np.ndarray) and np.isfinite(result.x).all()
    assert np.array_equal(big(b).shape, b.shape)


def test_progress_prints_lines_without_tqdm(monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    A = ps.Diagonal(np.linspace(1, 100, 50), "N")
    ps.conjugate_gradients(A, np.ones(50), max_iterations=5, tolerance=0, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines and lines[-1].startswith("iteration 5 of 5, residual ")


def test_progress_uses_tqdm_where_it_is(monkeypatch):
    import sys
    import types

    made = []

    class Bar:
        n = 0

        def __init__(self, total, unit):
            self.total = total
            made.append(self)

        def update(self, by):
            self.n += by

        def set_postfix(self, **facts):
            self.facts = facts

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    A = ps.Diagonal(np.linspace(1, 100, 50), "N")
    ps.conjugate_gradients(A, np.ones(50), max_iterations=5, tolerance=0, progress=True)
    assert made[0].total == made[0].n == 5 and made[0].closed


@pytest.mark.parametrize("progress", [3, "yes"])
def test_progress_refuses_what_it_does_not_know(progress):
    with pytest.raises(TypeError, match="progress"):
        ps.conjugate_gradients(ps.Diagonal([1.0], "N"), np.ones(1), progress=progress)


def test_exceptions_of_progress_end_the_solve():
    def fail(info):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ps.conjugate_gradients(ps.Diagonal([1.0, 2.0], "N"), np.ones(2), progress=fail)


def test_history_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = ps.conjugate_gradients(ps.Diagonal([1.0, 2.0], "N"), np.ones(2))
    ax = result.history.plot()
    assert len(ax.lines[0].get_xdata()) == len(result.history)
    assert len(result.history.plot(ax=ax).lines) == 2
