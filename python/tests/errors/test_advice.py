# SPDX-License-Identifier: Apache-2.0
"""Advice in messages is written as a user of Python would write it."""

import numpy as np
import pytest

import palimpsest as ps


def message_of(call):
    with pytest.raises(ps.Error) as caught:
        call()
    return str(caught.value)


def unused_input():
    x = ps.dvector("x")
    ps.function([x], ps.ones(2))


def other_shape():
    s = ps.shared(np.zeros(2), shape=(2,))
    s.set_value(np.zeros(3))


def in_place_without_leave():
    x = ps.dvector("x")
    ps.function([x], ps.ops.inplace.exp_inplace(x))


def unknown_size():
    ps.distribute(ps.Fft(1, batch=()), ps.Team.pretend({"rank": 2}), {"Nx": "rank"})


def no_team():
    ps.smallest_team(ps.Diagonal(np.ones(9), "N"), 1, np.ones(9))


def masked():
    ps.asarray(np.ma.ones(3))


@pytest.mark.parametrize("call, advice", [
    (unknown_size, 'Try with_sizes({"Nx": ..})'),
    (no_team, "Try most_ranks, or"),
    (masked, "Try .filled()"),
    (unused_input, "Try on_unused_input='ignore'"),
    (other_shape, "shape=None"),
    (in_place_without_leave, "accept_inplace=True"),
])
def test_advice_is_python(call, advice):
    text = message_of(call)
    assert advice in text
    assert "::" not in text and "{." not in text


X = ps.dvector("x")


@pytest.mark.parametrize("call, kind, text", [
    (lambda: ps.asarray(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.shared(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.ones(2).__setitem__(0, None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.ones(2).fill_(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.read_npy(None), TypeError, "[read_npy] path: got None, expected a value"),
    (lambda: ps.ops.exp(None), TypeError, "[exp] x: got None, expected VariableLike"),
    (lambda: ps.asarray([1, [2]]), ValueError, "got a list of 1, expected a number."),
    (lambda: ps.asarray([[1], 2]), ValueError, "got a number, expected a list of 1."),
    (lambda: ps.random_normal(3, key=-1), OverflowError, "[key] got -1, expected 0 to 2**64 - 1."),
    (lambda: ps.random_normal(3, key=np.ones(3)), ValueError, "[key] expected a seed"),
    (lambda: ps.random_normal(3, key=1.5), TypeError, "[key] got float, expected a seed"),
    (lambda: ps.BatchSpec("N"), TypeError, "got str, expected a dict"),
    (lambda: ps.BatchSpec(3), TypeError, "got int, expected a dict"),
    (lambda: ps.split_linop(ps.Identity("N"), "N"), TypeError, "got str, expected a dict"),
    (lambda: ps.Restrict("N", "N"), TypeError, "got str, expected a dict"),
    (lambda: ps.Embed("N", ["ab"]), TypeError, "got str, expected a dict"),
    (lambda: ps.ops.tensordot(X, X, "a"), TypeError, "[tensordot] axes: got str, expected a number"),
    (lambda: ps.function([X], X, updates=3), TypeError, "[function] updates: got int, expected a dict"),
    (lambda: ps.function([X], X, givens=[3]), TypeError, "[function] givens: got int, expected a dict"),
    (lambda: ps.zeros(2, "complex256"), TypeError, "Try 'complex128'"),
    (lambda: ps.zeros(2, "bfloat16"), TypeError, "Try 'float32'"),
    (lambda: ps.asarray(np.ones(2, "G")), TypeError, "Try .astype('complex128')"),
    (lambda: ps.ops.irfft(X, 2**61), OverflowError, "expected"),
    (lambda: ps.ops.nufft_adjoint(np.ones(3), X, 2**34), OverflowError, "grid_size: got (17179869184,), expected"),
])
def test_texts_name_what_was_given(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert ps.random_normal(3, key=2**64 - 1).shape == (3,)
