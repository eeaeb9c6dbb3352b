# SPDX-License-Identifier: Apache-2.0
"""Ops written in Python: memory of the plan, declared aliases, exceptions, derivatives."""

import doctest

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.user_ops


class Scale(ps.Op):
    __props__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def make_node(self, x):
        return ps.Apply(self, [x], [x.type])

    def infer_shapes(self, node, shapes):
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        np.multiply(inputs[0], self.factor, out=outputs[0])

    def pullback(self, node, cotangents):
        return [cotangents[0] * self.factor]


def test_examples():
    assert doctest.testmod(palimpsest.user_ops).failed == 0


def test_a_step_like_others():
    x = ps.dvector("x")
    f = ps.function([x], Scale(3.0)(x + 1) * 2)
    assert f([1.0, 2.0]).tolist() == [12, 18]
    assert ps.function([x], ps.grad(ps.ops.sum(Scale(3.0)(x)), x))([1.0]).tolist() == [3]
    assert Scale(3.0) == Scale(3.0) != Scale(4.0) and hash(Scale(3.0)) == hash(Scale(3.0))
    y = Scale(3.0)(x) + Scale(3.0)(x)
    assert ps.function([x], y, mode="DebugMode")([1.0]).tolist() == [6]


def test_no_copies():
    seen = []

    class Look(Scale):
        def perform(self, node, inputs, outputs):
            seen.append((inputs[0].ctypes.data, inputs[0].flags.writeable))
            outputs[0][...] = inputs[0]

    x = ps.dvector("x")
    a = np.ones(100)
    with ps.CopyStats() as copies:
        ps.function([x], Look(1.0)(x))(a)
    assert seen[0] == (a.ctypes.data, False) and copies.copies + copies.import_copies == 0


def test_in_place():
    class Increment(Scale):
        destroy_map = {0: [0]}

        def perform(self, node, inputs, outputs):
            assert inputs[0].flags.writeable
            inputs[0] += self.factor

    x = ps.dvector("x")
    a = np.zeros(2)
    f = ps.function([x], Increment(1.0)(x * 1.0), accept_inplace=True)
    assert f(a).tolist() == [1, 1] and a.tolist() == [0, 0]
    with pytest.raises(ps.errors.Error):
        ps.function([x], Increment(1.0)(x * 1.0))

    class Lies(Increment):
        destroy_map = {}

        def perform(self, node, inputs, outputs):
            inputs[0] += 1

    with pytest.raises(ValueError, match="read-only"):
        ps.function([x], Lies(1.0)(x))(a)


def test_exceptions_arrive_as_they_are_and_change_nothing():
    class Fails(Scale):
        def perform(self, node, inputs, outputs):
            raise LookupError("mine")

    s = ps.shared(np.zeros(2))
    f = ps.function([], None, updates={s: Fails(1.0)(s)})
    with pytest.raises(LookupError, match="mine"):
        f()
    assert s.get_value().tolist() == [0, 0] and s.version == 0


def test_arrays_are_not_kept():
    kept = []

    class Keeps(Scale):
        def perform(self, node, inputs, outputs):
            kept.append(inputs[0])
            outputs[0][...] = 0

    x = ps.dvector("x")
    with pytest.raises(ps.OpError, match="kept"):
        ps.function([x], Keeps(1.0)(x))([1.0])
    kept.clear()


def test_other_arrays_as_results_are_copied():
    class Replaces(Scale):
        def perform(self, node, inputs, outputs):
            outputs[0] = inputs[0] * 2

    x = ps.dvector("x")
    assert ps.function([x], Replaces(1.0)(x))([1.0]).tolist() == [2]


def test_what_is_missing_is_named():
    class Nothing(ps.Op):
        pass

    with pytest.raises(NotImplementedError, match="make_node"):
        Nothing()(ps.dvector())

    class NoDerivative(Scale):
        pullback = property()

    x = ps.dvector("x")
    with pytest.raises(NotImplementedError):
        ps.grad(ps.ops.sum(NoDerivative(1.0)(x)), x)
