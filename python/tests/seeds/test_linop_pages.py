# SPDX-License-Identifier: Apache-2.0
"""What the pages of torch-named-linops say of copies, views and shared data."""

import copy
import pickle

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.torchlinops as tl
from palimpsest.copying import memory_aware_deepcopy, memory_aware_to, memory_report
from palimpsest.torchlinops import Dense, Diagonal, Dim

RNG = np.random.default_rng(7)
W = RNG.normal(size=(3, 7))
X = RNG.normal(size=7)


def dense(weight=W):
    return Dense(np.array(weight), Dim("MN"), ishape=Dim("N"), oshape=Dim("M"))


def test_shallow_copies_share_their_weights():
    A = dense()
    adj = A.H
    assert adj.weight is A.weight
    adj.weight.data.fill_(0)
    assert np.sum(A.weight) == 0
    B = copy.copy(dense())
    assert B.weight.data_ptr() == copy.copy(B).weight.data_ptr()
    C = copy.copy(B)
    C.ishape = "Q"
    assert B.ishape == "N" and C.weight is B.weight and C.H.oshape == "Q"


def test_parameters_are_the_arrays_given():
    weight = np.array(W)
    A = Dense(weight, Dim("MN"), ishape=Dim("N"), oshape=Dim("M"))
    assert A.weight.data_ptr() == weight.ctypes.data
    weight[:] = 0
    assert not A(X).any()
    assert not A.weight.trainable


def test_children_of_sums_are_copies_that_share():
    A = dense()
    for made in (tl.Add(A, A), tl.Concat(A, A, odim="M"), tl.Stack(A, A, odim_and_idx=("S", 0))):
        assert made.linops[0] is not made.linops[1]
        assert made.linops[0].weight.data_ptr() == made.linops[1].weight.data_ptr()
    add = tl.Add(A, A)
    np.testing.assert_allclose(add(X), 2 * W @ X)
    A.weight.data.fill_(1)
    np.testing.assert_allclose(add(X), np.full(3, 2 * X.sum()))


@pytest.mark.parametrize("duplicate", [memory_aware_deepcopy, copy.deepcopy,
                                       lambda A: pickle.loads(pickle.dumps(A))])
def test_views_stay_views(duplicate):
    buffer = ps.Parameter(np.arange(12.0))
    parts = [Diagonal(buffer.view(slice(a, b)), ioshape=Dim("N")) for a, b in ((0, 8), (4, 12))]
    A = tl.Chain(*parts)
    B = duplicate(A)
    first, second = (part.weight for part in B.linops)
    assert second.data_ptr() - first.data_ptr() == 4 * 8
    assert ps.operator_bytes(B) == ps.operator_bytes(A) == 12 * 8
    x = np.ones(8)
    np.testing.assert_allclose(B(x), A(x))
    before = A(x)
    first.data.fill_(0)
    assert not B(x)[:4].any() and np.array_equal(A(x), before)
    assert second.value.tolist() == [0, 0, 0, 0, 8, 9, 10, 11]


def test_devices_keep_views_as_well():
    A = tl.Chain(*[Diagonal(np.ones(4), ioshape=Dim("N"))] * 2)
    assert memory_aware_to(A, "cpu") is A
    moved = memory_aware_to(A, "cpu:1")
    assert memory_report(moved) == {"cpu:1": 32} and memory_report(A) == {"cpu": 32}


def test_the_adjoint_conjugates():
    V = RNG.normal(size=(3, 7)) + 1j * RNG.normal(size=(3, 7))
    A = dense(V)
    y = RNG.normal(size=3) + 0j
    np.testing.assert_allclose(A.H(y), V.conj().T @ y)


def test_the_first_program():
    A = dense()
    y = A(X)
    np.testing.assert_allclose(y, W @ X)
    np.testing.assert_allclose(A.H(y), W.T @ y)
    np.testing.assert_allclose(A.N(X), W.T @ W @ X)
    d = RNG.normal(size=3)
    B = Diagonal(d, ioshape=Dim("M"))
    np.testing.assert_allclose((B @ A)(X), d * (W @ X))
    np.testing.assert_allclose(Dense(np.array(W))(X), W @ X)
    stack = RNG.normal(size=(2, 5, 3))
    x = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(Dense(stack)(x), np.einsum("bmn,bn->bm", stack, x))


def test_wildcards_of_shapes():
    assert ps.NS(("A", "..."), ("...",)).ishape == ("A", "...")
    assert tl.AnyDim() == tl.ANY and tl.get_nd_shape(2, kspace=True) == ("Kx", "Ky")
    assert tl.N2K(Dim("CNxNy")) == ("C", "Kx", "Ky") and tl.K2N(Dim("KxKz")) == ("Nx", "Nz")
