# SPDX-License-Identifier: Apache-2.0
"""Ops that overwrite an operand, with the names that users of PyTensor know."""

import math

import numpy as np
import pytest

import palimpsest as ps
from palimpsest.ops import dscalars, dvector, log
from palimpsest.ops.inplace import add_inplace


def test_the_value_before_and_the_value_after():
    x, y = dscalars("x", "y")
    r1 = log(x)
    r2 = add_inplace(x, y)  # x after the addition
    r3 = log(x)  # of x before it, also where it is written later
    r4 = log(r2)
    f = ps.function([ps.In(x, mutable=True), y], [r1, r2, r3, r4], accept_inplace=True)
    before, after, again, of_sum = f(np.array(2.0), 3.0)
    assert before == again == pytest.approx(math.log(2.0), rel=1e-15)
    assert after == 5.0
    assert of_sum == pytest.approx(math.log(5.0), rel=1e-15)


def test_a_function_takes_them_only_when_asked():
    x, y = dscalars("x", "y")
    with pytest.raises(ps.Error, match="accept_inplace"):
        ps.function([ps.In(x, mutable=True), y], add_inplace(x, y))


def test_an_argument_that_is_not_lent_is_not_overwritten():
    x, y = dvector("x"), dvector("y")
    with pytest.raises(ps.InconsistencyError, match="AddInPlace destroys x"):
        ps.function([x, y], add_inplace(x, y), accept_inplace=True)


def test_a_variable_can_be_marked_as_not_to_be_overwritten():
    x = dvector("x")
    y = x + 1
    assert y.tag.indestructible is False
    y.tag.indestructible = True
    assert y.tag.indestructible is True
    f = ps.function([x], [log(y), y])
    logs, kept = f(np.zeros(3))
    assert np.array_equal(logs, np.zeros(3))
    assert np.array_equal(kept, np.ones(3))
