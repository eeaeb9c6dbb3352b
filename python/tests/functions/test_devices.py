# SPDX-License-Identifier: Apache-2.0
"""Arrays, functions and operators on an accelerator: OpenCL on the processor."""

import numpy as np
import palimpsest as ps
import pytest

THERE = "opencl:0"


@pytest.fixture
def x():
    return np.arange(6.0).reshape(2, 3)


def test_devices_are_listed_and_can_be_waited_for():
    assert ps.devices()[0] == "cpu"
    assert THERE in ps.devices()
    ps.synchronize(THERE)
    ps.synchronize()
    with pytest.raises(TypeError, match="opencl:77: this machine has"):
        ps.synchronize("opencl:77")


def test_arrays_move_and_compute_there(x):
    t = ps.asarray(x, device=THERE)
    assert t.device == THERE
    y = ps.Scalar(2.0, "A B").to(THERE)(t)
    assert y.device == THERE
    np.testing.assert_array_equal(np.asarray(y), 2 * x)
    assert y.to("cpu").device == "cpu"
    assert "device=opencl:0" in repr(y)
    assert float(t[1, 2]) == 5.0


def test_the_host_sees_copies_only(x):
    t = ps.asarray(x, device=THERE)
    copy = np.asarray(t)
    copy[...] = 7
    np.testing.assert_array_equal(np.asarray(t), x)
    with pytest.raises(ValueError, match="the host cannot reach opencl:0"):
        t.__array__(copy=False)
    with pytest.raises(TypeError, match="the host cannot reach opencl:0"):
        t.numpy()


def test_writes_leave_lazy_clones_alone(x):
    t = ps.asarray(x, device=THERE)
    u = t.lazy_clone()
    u[0] = -1
    np.testing.assert_array_equal(np.asarray(t), x)
    np.testing.assert_array_equal(np.asarray(u)[0], [-1, -1, -1])


def test_shared_variables_live_there_and_are_read_on_the_host(x):
    s = ps.shared(x, device=THERE)
    assert isinstance(s.get_value(), np.ndarray)
    assert s.get_value(return_internal_type=True).device == THERE
    f = ps.function([], None, updates={s: s + 1})
    f()
    f()
    np.testing.assert_array_equal(s.get_value(borrow=True), x + 2)


def test_operators_move_with_their_parameters(x):
    A = ps.Diagonal(np.arange(1.0, 4.0), "X")
    B = A.to(THERE)
    y = B(ps.asarray(np.ones(3), device=THERE))
    assert y.device == THERE
    np.testing.assert_array_equal(np.asarray(y), [1, 2, 3])
    np.testing.assert_array_equal(np.asarray(A(np.ones(3))), [1, 2, 3])


def test_memory_is_counted_for_each_device():
    with ps.MemoryScope(THERE) as there, ps.MemoryScope() as here:
        t = ps.zeros((1000,), device=THERE)
    assert there.peak_bytes == 8000
    assert here.peak_bytes == 0
    del t


def test_dlpack_takes_memory_back_without_a_copy(x):
    t = ps.asarray(x, device=THERE)
    u = ps.from_dlpack(t)
    assert u.device == THERE
    assert t.__dlpack_device__() == (4, 0)
    t[0] = -1
    np.testing.assert_array_equal(np.asarray(t)[0], [-1, -1, -1])
    with pytest.raises(BufferError, match="dl_device"):
        t.__dlpack__(dl_device=(1, 0))
    with pytest.raises(ValueError, match=f"stream: got 7, expected none on {THERE}"):
        t.__dlpack__(stream=7)
    with pytest.raises(ValueError, match="stream: got 1, expected none on cpu"):
        ps.asarray(x).__dlpack__(stream=1)
