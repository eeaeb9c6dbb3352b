# SPDX-License-Identifier: Apache-2.0
"""MonitorMode and breakpoints: Python functions that see intermediate values."""

import numpy as np
import pytest

import palimpsest as ps


def test_monitor_sees_every_step_and_keeps_copies():
    x = ps.dvector("x")
    seen = []
    mode = ps.MonitorMode(pre=lambda i, node, ins, outs: seen.append(("pre", i)),
                          post=lambda i, node, ins, outs: seen.append((node.op_name, ins[0], outs[0])))
    f = ps.function([x], ps.ops.cumsum(ps.ops.exp(x), 0), mode=mode)
    result = f([0.0, 0.0])
    assert ("pre", 0) in seen and ("pre", 1) in seen
    f([1.0, 1.0])
    last = [entry for entry in seen if entry[0] != "pre"][1]
    np.testing.assert_array_equal(last[2], result)
    np.testing.assert_array_equal(result, [1.0, 2.0])


def test_exceptions_of_a_monitor_end_the_call():
    def fail(i, node, ins, outs):
        raise KeyError("mine")

    x = ps.dvector("x")
    with pytest.raises(KeyError, match="mine"):
        ps.function([x], ps.ops.exp(x), mode=ps.MonitorMode(post=fail))([1.0])


def test_detect_nan():
    x = ps.dvector("x")
    f = ps.function([x], ps.ops.log(x), mode=ps.MonitorMode(post="detect_nan"))
    assert f([1.0]) == 0
    with pytest.raises(AssertionError):
        f([-1.0])


def test_monitor_refuses_what_is_no_function():
    with pytest.raises(TypeError, match="MonitorMode.*got int"):
        ps.MonitorMode(pre=3)


def test_breakpoint_operator_sees_both_directions():
    seen = []
    ps.set_breakpoint_hook("both", lambda name, direction, data: seen.append((name, direction, data.copy())))
    A = ps.Breakpoint("N", "both")
    A([1.0, 2.0])
    A.H([3.0, 4.0])
    assert [entry[:2] for entry in seen] == [("both", "forward"), ("both", "adjoint")]
    np.testing.assert_array_equal(seen[1][2], [3.0, 4.0])


def test_breakpoint_needs_a_hook_that_is_a_function():
    with pytest.raises(ValueError, match="hook"):
        ps.Breakpoint("N", "nobody set this")
    with pytest.raises(TypeError, match="expected a function"):
        ps.set_breakpoint_hook("x", 3)


def test_exceptions_of_a_hook_arrive():
    def fail(name, direction, data):
        raise KeyError("mine")

    ps.set_breakpoint_hook("failing", fail)
    with pytest.raises(KeyError, match="mine"):
        ps.Breakpoint("N", "failing")([1.0])
    ps.set_breakpoint_hook("failing", lambda name, direction, data: None)
    ps.Breakpoint("N", "failing")([1.0])


def test_sampling_ops_against_numpy():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(12) + 1j * rng.standard_normal(12)
    k = np.array([[-3.5], [0.0], [2.25]])
    n = np.arange(12) - 6
    direct = np.array([(x * np.exp(-2j * np.pi * f * n / 12)).sum() for f in k[:, 0]]) / np.sqrt(12)
    y = ps.function([], ps.ops.nufft(x, k, eps=1e-8))()
    np.testing.assert_allclose(y, direct, atol=1e-6)
    back = ps.function([], ps.ops.nufft_adjoint(y, k, 12, eps=1e-8))()
    np.testing.assert_allclose(np.vdot(back, x), np.vdot(y, y), rtol=1e-6)
    np.testing.assert_array_equal(ps.function([], ps.ops.take(np.arange(12).reshape(3, 4), [2, 0], 0))(),
                                  np.arange(12).reshape(3, 4)[[2, 0]])
    s = ps.function([], ps.ops.stencil(x.real, [-1.0, 1.0], offset=0))()
    np.testing.assert_allclose(s, np.roll(x.real, -1) - x.real)
    with pytest.raises(ValueError, match="spline2"):
        ps.ops.interpolate(x, k, kernel="spline7")
    with pytest.raises(ValueError, match="axis 3"):
        ps.ops.stencil(x, [1.0], axis=3)
