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
