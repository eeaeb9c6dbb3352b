# SPDX-License-Identifier: Apache-2.0
"""All objects stay as they were when any allocation of a call fails or any callback throws."""

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as po

RNG = np.random.default_rng(2)
W = RNG.normal(size=(6, 6)) + 6 * np.eye(6)
X = RNG.normal(size=6)
IMAGE = RNG.normal(size=(8, 8)) + 0j
A = ps.Dense(W, "MN,N->M")
P = ps.Dense(W, "MN,N->M").N
F = ps.Fft(2, batch=())
v, m = ps.dvector("v"), ps.dmatrix("m")
s = ps.shared(np.zeros(6), "s")
OUT = np.zeros(6)

CALLS = {
    "dense": lambda: A(X),
    "adjoint": lambda: A.H(X),
    "normal": lambda: A.N(X),
    "fft": lambda: F(IMAGE),
    "fft of a turned view": lambda: F(IMAGE.T[::-1]),
    "tensor": lambda: A(ps.asarray(X)).numpy(),
    "chain": lambda: (A | ps.Diagonal(X, "M"))(X),
    "sum": lambda: (A + A)(X),
    "tile": lambda: A.split({"M": slice(1, 3)})(X),
    "convolution": lambda: ps.Convolution(X[:3], grid="N", batch=())(X),
    "nufft": lambda: ps.Nufft(np.array([[0.1], [0.4]]), (8,), "K")(np.ones(8, complex)),
    "matrix": lambda: A.matrix(),
    "dot test": lambda: ps.dot_test(A).ok,
    "deepcopy": lambda: A.deepcopy(eager=True)(X),
    "dtype": lambda: A.to("complex128")(X + 0j),
    "bytes": lambda: ps.from_bytes(ps.to_bytes(A))(X),
    "compile and call": lambda: ps.function([v], po.exp(v) * v)(X),
    "gradient": lambda: ps.function([v], ps.grad(po.sum(po.exp(v)), v))(X),
    "matrix product": lambda: ps.function([m], po.dot(m, m))(W),
    "update": lambda: (ps.function([v], updates={s: v})(X), s.get_value())[1],
    "shared": lambda: ps.shared(X).get_value(),
    "call_into": lambda: (ps.function([v], v * 2).call_into(OUT, X), OUT.copy())[1],
    "cg": lambda: ps.conjugate_gradients(P, X, tolerance=1e-10).x,
    "lsqr": lambda: ps.lsqr(A, X, max_iterations=20).x,
    "gmres": lambda: ps.gmres(P, X, tolerance=1e-10).x,
    "fista": lambda: ps.fista(A, ps.L1(0.1), X, max_iterations=10).x,
    "plan": lambda: ps.plan(ps.cg, P, X).peak_bytes,
    "svd": lambda: ps.svd(A, 2)[1],
    "prox": lambda: ps.L1(0.5).prox(X, 1.0),
    "random": lambda: ps.random_normal((3,), "float64", key=1).numpy(),
    "clone": lambda: ps.asarray(X, copy=True)[1:].clone().numpy(),
}


def same(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_every_allocation_fails_once(name):
    call = CALLS[name]
    before = [a.copy() for a in (W, X, IMAGE)]
    expected = np.array(call())
    n = failed = 0
    while True:
        with ps.FailingAllocator(n) as failing:
            try:
                found = np.array(call())
            except MemoryError as error:
                assert isinstance(error, ps.OutOfMemory)
                failed += 1
                found = None
        if found is not None:
            same(found, expected)
        if not failing.has_failed:
            break
        same(call(), expected)  # all objects are as they were
        n += 1
        assert n < 3000
    assert failed > 0
    for a, b in zip((W, X, IMAGE), before):
        assert np.array_equal(a, b)


class Mine(Exception):
    pass


@pytest.mark.parametrize("at", range(4))
def test_callbacks_of_solvers_throw(at):
    before = X.copy()

    def callback(info):
        if info.iteration == at + 1:
            raise Mine("mine")

    with pytest.raises(Mine, match="mine"):
        ps.conjugate_gradients(P, X, tolerance=1e-14, callback=callback)
    assert np.array_equal(X, before)
    same(P(ps.conjugate_gradients(P, X, tolerance=1e-12).x), X)


def test_functions_of_operators_and_ops_throw():
    def fail(*arguments):
        raise Mine("mine")

    with pytest.raises(Mine):
        ps.SimpleLinop(fail, ishape="N")(X)
    with pytest.raises(Mine):
        ps.as_op()(fail)(v)  # of the types: none; of the values:
        ps.function([v], ps.as_op()(fail)(v))(X)
    with pytest.raises(Mine):
        s.modify(fail)
    with pytest.raises(Mine):
        A.weight.modify(fail)
    same(A(X), W @ X)
    s.set_value(X)
    same(s.get_value(), X)
