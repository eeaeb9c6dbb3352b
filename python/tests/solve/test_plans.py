# SPDX-License-Identifier: Apache-2.0
"""One verb plans every solver; the words of SciPy; proximal functions as objects."""

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(7)
M = RNG.normal(size=(6, 6))
A = ps.Dense(M @ M.T + np.eye(6))
B = RNG.normal(size=6)
H = ps.L1(0.1)
TERM = ps.Objective(A, terms=[H.on(ps.FiniteDifference("N", "N"))])
OPTIONS = {"max_iterations": 4}
SOLVES = {
    **{name: (getattr(ps, name), (A, B)) for name in
       ("conjugate_gradients", "cg_normal", "cgls", "lsqr", "lsmr", "minres", "gmres", "bicgstab", "gradient_descent",
        "nesterov")},
    "chebyshev": (lambda *a, **o: ps.chebyshev(*a, lower=0.5, upper=40.0, **o), (A, B)),
    **{name: (getattr(ps, name), (A, H, B)) for name in ("ista", "fista", "pogm")},
    "minimize": (ps.minimize, (TERM, B)), "minimize by cg": (ps.minimize, (ps.Objective(A), B)),
    "condat_vu": (ps.condat_vu, (TERM, B)), "admm": (ps.admm, (TERM, B)), "pdhg": (ps.pdhg, (H, TERM, B)),
}


@pytest.mark.parametrize("name", SOLVES)
def test_a_plan_announces_what_the_solve_takes(name):
    solver, arguments = SOLVES[name]
    plan = ps.plan(solver, *arguments, **OPTIONS)
    with ps.MemoryScope() as memory:
        result = solver(*arguments, **OPTIONS)
    assert plan.peak_bytes == result.peak_bytes == result.plan.peak_bytes
    assert 0 < memory.peak_bytes <= plan.peak_bytes
    of_type = ps.plan(solver, *arguments[:-1], ps.TensorType("float64", (6,)), **OPTIONS)
    assert of_type.peak_bytes == plan.peak_bytes


@pytest.mark.parametrize("name", SOLVES)
def test_the_smallest_budget_is_one(name):
    solver, arguments = SOLVES[name]
    least = ps.smallest_budget(solver, *arguments, **OPTIONS)
    assert solver(*arguments, budget=least, **OPTIONS).plan.total_bytes <= least
    with pytest.raises(ps.BudgetError):
        solver(*arguments, budget=least - 1, **OPTIONS)


def test_plans_run_nothing():
    applied = []

    def forward(x):
        applied.append("A")
        return x

    C = ps.from_functions(forward, forward, "N", "N", {"N": 6}, check=False)
    ps.plan(ps.cg, C, B)
    ps.plan(ps.cg_normal, C, B)
    assert applied == [] and ps.cg(C, B).converged and applied


def test_plans_of_other_calls():
    assert ps.plan(A, B).peak_bytes == A.plan(B).peak_bytes
    x = ps.dvector("x")
    f = ps.function([x], ps.ops.exp(x) * 2)
    assert ps.plan(f, B).peak_bytes == f.plan(B).peak_bytes
    with ps.MemoryScope() as memory:
        ps.svd(A, 2)
    assert ps.plan(ps.svd, A, 2).peak_bytes >= memory.peak_bytes > 0
    assert ps.plan(ps.power_method, A).peak_bytes > 0
    for wrong, error in ((lambda: ps.plan(len, [1]), "no solver"), (lambda: ps.plan(ps.lanczos, A, B), "single steps")):
        with pytest.raises((ValueError, NotImplementedError), match=error):
            wrong()
    with pytest.raises(TypeError, match="unknown option 'budgt'"):
        ps.plan(ps.cg, A, B, budgt=1)
    assert ps.cg(A, B).converged  # the error has ended the planning


class Test_words_of_scipy:
    def test_they_are_the_options_of_the_library(self):
        assert ps.cg is ps.conjugate_gradients
        for solver in (ps.cg, ps.minres, ps.gmres, ps.bicgstab):
            one, other = solver(A, B, rtol=1e-3, maxiter=3), solver(A, B, tolerance=1e-3, max_iterations=3)
            assert one.iterations == other.iterations and np.array_equal(one.x, other.x)
        assert ps.lsqr(A, B, maxiter=2).iterations == 2

    def test_atol_is_absolute(self):
        wanted = 0.05
        r = ps.cg(A, B, rtol=0.0, atol=wanted)
        assert r.converged and np.linalg.norm(B - A(r.x)) <= wanted * (1 + 1e-9)
        assert r.iterations < ps.cg(A, B).iterations
        with pytest.raises(ValueError, match=r"\[atol\] got one together with batch"):
            ps.cg(ps.Diagonal(np.ones((3, 2)), "SN"), np.ones((3, 2)), batch="S", atol=0.1)

    def test_callbacks_of_the_iterate(self):
        seen = []
        r = ps.cg(A, B, callback=lambda xk: seen.append(np.linalg.norm(B - A.matrix() @ xk)))
        assert len(seen) == r.iterations and seen[-1] < 1e-5


def test_methods_of_proximal_functions():
    x = RNG.normal(size=6)
    assert H.weighted(2.0).value(x) == pytest.approx(0.2 * np.abs(x).sum())
    assert H.conjugate().prox(x).max() <= 0.1
    D = ps.FiniteDifference("N", "N")
    by_method = ps.minimize(ps.Objective(A, terms=[H.on(D, np.ones(6))]), B)
    assert np.array_equal(by_method.x, ps.minimize(ps.Objective(A, terms=[ps.Term(H, D, np.ones(6))]), B).x)
