# SPDX-License-Identifier: Apache-2.0
"""Operators as classes derived from NamedLinop."""

import copy
import gc
import pickle

import numpy as np
import pytest

import palimpsest as ps

W = np.arange(1.0, 13).reshape(3, 4) * (1 + 0.5j)
X = np.arange(4.0)
Y = np.arange(3.0)


class Weighted(ps.NamedLinop):
    """With functions as static methods, and members of its own."""

    unit = 2

    def __init__(self, w, shift=0):
        super().__init__(ps.NS("N", "M"))
        self.w = w
        self.shift = shift

    @staticmethod
    def fn(A, x):
        return ps.ops.dot(A.w, ps.ops.roll(x, A.shift, axis=-1)) * A.unit

    @staticmethod
    def adj_fn(A, y):
        return ps.ops.roll(ps.ops.dot(ps.ops.conj(A.w.T), y), -A.shift, axis=-1) * A.unit

    def norm(self):
        return float(np.linalg.norm(self.matrix(N=4)))


class Edge(ps.NamedLinop):
    """Made by the arguments that the factory of a decorated class has; its adjoint is derived."""

    def fn(A, x):
        return A.w * (x - ps.ops.roll(x, 1, axis=-1))


def dense(shift=0):
    return 2 * np.roll(W, -shift, axis=1)


def test_it_is_an_operator():
    A = Weighted(W, 1)
    assert isinstance(A, Weighted) and isinstance(A, ps.NamedLinop) and (A.ishape, A.oshape) == ("N", "M")
    np.testing.assert_allclose(A(X), dense(1) @ X)
    np.testing.assert_allclose(A.H(Y), dense(1).conj().T @ Y)
    np.testing.assert_allclose(A.N(X), dense(1).conj().T @ dense(1) @ X)
    np.testing.assert_allclose((2 * A | ps.Identity("M"))(X), 2 * dense(1) @ X)
    assert ps.dot_test(A, sizes={"N": 4}) and A.norm() == pytest.approx(np.linalg.norm(dense(1)))
    assert {"w", "shift", "norm"} <= set(dir(A))


def test_what_is_made_from_it_has_its_class():
    A = Weighted(W)
    for B in (A.H, A.copy(), copy.deepcopy(A), A.renamed({"N": "P"}), pickle.loads(pickle.dumps(A))):
        assert type(B) is Weighted and B.shift == 0 and B.norm
    assert A.H.H is A and A.H.w is A.w and A.H.fn is A.adj_fn and A.fn is Weighted.fn
    chain = ps.Chain(Weighted(W), ps.Identity("M"))
    gc.collect()  # the object is gone, its operator is in the chain
    assert type(chain[0]) is Weighted and chain[0].norm() > 0


def test_the_values_of_a_deep_copy_are_its_own():
    A = Weighted(W.copy())
    B, C = copy.deepcopy(A), copy.copy(A)
    A.w.data.fill_(0)
    assert not A(X).any() and not C(X).any() and B(X).any()


def test_files(tmp_path):
    A = Weighted(W, 1) | ps.Identity("M")
    ps.save(A, str(tmp_path / "A.pal"))
    B = ps.load(str(tmp_path / "A.pal"))
    assert type(B[0]) is Weighted
    np.testing.assert_array_equal(A(X), B(X))


def test_arguments_of_the_constructor():
    E = Edge("N", w=np.ones(4))
    np.testing.assert_allclose(E(X), X - np.roll(X, 1))
    assert ps.dot_test(E, sizes={"N": 4}) and E.name == "Edge" and Edge("N", w=X, name="e", sizes={"N": 4}).name == "e"
    E.w = 2 * np.ones(4)
    np.testing.assert_allclose(E(X), 2 * (X - np.roll(X, 1)))


def test_the_decorator_keeps_the_class():
    @ps.linop(name="a name in files")
    class Named(Edge):
        pass

    assert isinstance(Named("N", w=X), Named) and Named("N", w=X).type_name == "a name in files"
    assert ps.linop(Named) is Named


def test_functions_of_an_operator_are_set():
    A = Weighted(W)
    B = A.copy()
    B.fn = negative
    np.testing.assert_allclose(B(X), -A(X))
    np.testing.assert_allclose(A(X), dense() @ X)
    with pytest.raises(TypeError, match="expected a function"):
        B.fn = 3
    with pytest.raises(AttributeError, match="has no attribute or parameter 'adj_fn'"):
        _ = Edge("N", w=X).adj_fn


def negative(A, x):
    return -Weighted.fn(A, x)


def test_a_class_that_is_derived_again():
    class Opposite(Weighted):
        @staticmethod
        def fn(A, x):
            return -Weighted.fn(A, x)

        @staticmethod
        def adj_fn(A, y):
            return -Weighted.adj_fn(A, y)

    A = Opposite(W)
    assert isinstance(A, Weighted) and A.norm() > 0
    np.testing.assert_allclose(A.N(X), dense().conj().T @ dense() @ X)


def test_an_object_dies_with_its_last_reference():
    import weakref

    A = Weighted(W)
    A(X), A.N(X)
    known = weakref.ref(A)
    del A
    gc.collect()
    assert known() is None


class Late(ps.NamedLinop):
    def __init__(self):
        self.w = 3


class Empty(ps.NamedLinop):
    pass


def closure():
    n = 2

    class Captured(ps.NamedLinop):
        def fn(A, x):
            return x * n


def other_name():
    class Other(ps.NamedLinop):
        def fn(A, x):
            return x

        def normal(self, inner=None):
            return self


def twice():
    A = Weighted(W)
    A.__init__(W)


@pytest.mark.parametrize("make, kind, text", [
    (Late, RuntimeError, "Try super().__init__(ishape, oshape) first"),
    (lambda: Empty("N"), TypeError, "[Empty] has no fn"),
    (closure, ValueError, "fn is a closure over n"),
    (other_name, TypeError, "got 'normal', which is derived here. Try normal_fn."),
    (twice, RuntimeError, "second call of NamedLinop.__init__"),
    (lambda: setattr(Weighted(W), "other", object()), TypeError, "got object, expected an array, a number"),
    (lambda: setattr(Weighted(W), "unit", 3), TypeError, "which its class has already"),
    (lambda: ps.NamedLinop("N"), TypeError, "or a class derived from NamedLinop that has fn."),
])
def test_errors(make, kind, text):
    with pytest.raises(kind) as caught:
        make()
    assert text in str(caught.value)
