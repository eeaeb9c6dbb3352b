# SPDX-License-Identifier: Apache-2.0
"""The programs of the first page of torch-named-linops, with the import changed."""

import pytest

import palimpsest as ps
from palimpsest.torchlinops import Dense, Diagonal, Dim

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_operators_with_named_dimensions():
    W = torch.randn(3, 7)
    A = Dense(W, Dim("MN"), ishape=Dim("N"), oshape=Dim("M"))
    x = torch.randn(7)
    y = A(x)
    z = A.H(y)
    w = A.N(x)
    torch.testing.assert_close(y, W @ x)
    torch.testing.assert_close(z, W.T @ y)
    torch.testing.assert_close(w, W.T @ W @ x)
    d = torch.randn(3)
    B = Diagonal(d, ioshape=Dim("M"))
    C = B @ A
    torch.testing.assert_close(C(x), d * (W @ x))


def test_operators_without_names():
    W = torch.randn(5, 3)
    A = Dense(W)
    x = torch.randn(3)
    torch.testing.assert_close(A(x), W @ x)
    W_batch = torch.randn(2, 5, 3)
    x_batch = torch.randn(2, 3)
    torch.testing.assert_close(Dense(W_batch)(x_batch), torch.einsum("bmn,bn->bm", W_batch, x_batch))


def test_weights_that_are_trained():
    weight = torch.nn.Parameter(torch.randn(3, 7), requires_grad=True)
    A = Dense(weight, Dim("MN"), ishape=Dim("N"), oshape=Dim("M"))
    x = torch.randn(7)
    A(x).sum().backward()
    torch.testing.assert_close(weight.grad, x.expand(3, 7))
    adj = A.H
    assert adj.weight is A.weight
    with torch.no_grad():
        weight.zero_()
    assert not A(x).any() and not adj(torch.ones(3)).any()
    frozen = Dense(torch.randn(3, 7), Dim("MN"), ishape=Dim("N"), oshape=Dim("M"))
    assert not frozen(x).requires_grad and not frozen.weight.trainable
    assert isinstance(A, ps.NamedLinop)
