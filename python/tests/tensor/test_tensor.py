# SPDX-License-Identifier: Apache-2.0
"""Views, lazy clones and writes of tensors."""

import copy
import operator
import pickle

import numpy as np
import pytest

import palimpsest as ps


def test_lazy_clones():
    t = ps.arange(4, "float64")
    u = t.lazy_clone()
    assert u.storage_id != t.storage_id and u.data_ptr() == t.data_ptr()
    assert not u.is_alias_of(t) and t.is_shared() and t.storage.references == 2
    u.fill_(0)
    assert u.data_ptr() != t.data_ptr() and t.tolist() == [0, 1, 2, 3]
    assert not t.is_shared()


def test_copies_of_python():
    t = ps.arange(4, "float64")
    assert copy.copy(t).is_alias_of(t)
    deep = copy.deepcopy(t)
    assert not deep.is_alias_of(t) and deep.data_ptr() == t.data_ptr()


def test_facts():
    t = ps.zeros((2, 3), "complex64")
    assert (t.shape, t.ndim, t.size, t.itemsize, t.nbytes) == ((2, 3), 2, 6, 8, 48)
    assert t.strides == (24, 8) and t.device == "cpu" and t.T.shape == (3, 2)
    assert len(t) == 2 and t.is_contiguous() and not t.T.is_contiguous()
    assert [row.shape for row in t] == [(3,), (3,)]
    assert ps.full((), 3).item() == 3 and int(ps.full((), 3)) == 3 and float(ps.full((), 3)) == 3.0
    assert bool(ps.ones(())) and complex(ps.full((), 1j)) == 1j
    assert "dtype=complex64" in repr(t)
    with pytest.raises(ps.errors.ShapeError):
        t.item()
    with pytest.raises(TypeError):
        len(ps.zeros(()))


def test_views_alias():
    t = ps.arange(12, "float64").view((3, 4))
    a = np.arange(12.0).reshape(3, 4)
    for key in [0, -1, slice(1, None), (slice(None), 2), (..., 1), (None, 0), (slice(None, None, -1),)]:
        assert t[key].tolist() == a[key].tolist()
        assert t[key].storage_id == t.storage_id
    assert t.permute((1, 0)).tolist() == a.T.tolist()
    assert t.expand((2, 3, 4)).shape == (2, 3, 4)
    assert t.flip((0,)).tolist() == a[::-1].tolist()
    assert t.diagonal().tolist() == a.diagonal().tolist()
    assert t.unfold(1, 2, 2).shape == (3, 2, 2)
    assert t.unsqueeze(0).squeeze(0).shape == (3, 4)
    assert t.bitcast("int64").dtype == "int64"
    assert t.view((4, 3)).is_alias_of(t)
    for key in ([0, 1], np.array([0, 1]), np.array([True, False, True]), np.array(True), ps.ones(3, int)):
        for index in (key, (slice(None), key)):
            with pytest.raises(TypeError, match="Variable"):
                t[index]
            with pytest.raises(TypeError, match="Variable"):
                t[index] = 0
    assert t[np.int32(1), np.array(2)].item() == 6
    with pytest.raises(TypeError):
        t[1.5]
    with pytest.raises(ps.errors.ValueError):
        t[3]


def test_writes():
    t = ps.zeros((2, 3))
    t[1] = [1, 2, 3]
    t[0, 1:] = 7
    assert t.tolist() == [[0, 7, 7], [1, 2, 3]]
    t[...] = 0
    assert t.tolist() == [[0] * 3] * 2
    t.copy_(np.ones(3))
    assert t.tolist() == [[1] * 3] * 2
    t.zero_()
    u = t.lazy_clone()
    t[0, 0] = 5
    assert u.tolist() == [[0] * 3] * 2 and t[0, 0].item() == 5
    assert t.fill_(2) is t


def test_there_is_no_arithmetic():
    t, a = ps.ones(3), np.ones(3)
    for f in (lambda: t + 1, lambda: 2 * t, lambda: -t, lambda: t @ t, lambda: t + a, lambda: a + t, lambda: a @ t,
              lambda: t < 1, lambda: divmod(t, 2), lambda: np.add(t, 1), lambda: np.add(a, a, out=t),
              lambda: operator.iadd(a.copy(), t), lambda: t**2, lambda: a == t):
        with pytest.raises(TypeError, match=r"np.asarray\(t\), or a Variable"):
            f()
    assert t == t and not (t == ps.ones(3)) and t != a and len({t, t}) == 1
    assert np.sum(t) == 3 and np.max(t) == 1 and np.allclose(t, a)
    A, x = ps.Identity("N"), ps.dvector("x")
    assert (A @ t).tolist() == [1, 1, 1] and isinstance(t + x, ps.Variable) and isinstance(x * t, ps.Variable)
    with pytest.raises(TypeError, match=r"\[@\].*A\.H @ x"):
        t @ A


def test_conversions():
    t = ps.asarray([1.5, 2.5])
    assert t.astype(int).tolist() == [1, 2] and t.to("float32").dtype == "float32"
    assert t.to("cpu:1").device == "cpu:1" and t.to("cpu:1").to("cpu").tolist() == [1.5, 2.5]
    assert ps.asarray(t, "complex64").tolist() == [1.5, 2.5]
    with pytest.raises(TypeError):
        ps.ones(2, complex).astype(float)


def test_numbers_survive_the_dtype_that_is_asked_for():
    t, u = ps.zeros(2, "int8"), ps.zeros(2, int)
    for f in (lambda: ps.asarray(300, "int8"), lambda: ps.asarray([1, -1], "uint16"), lambda: ps.full(2, 300, "int8"),
              lambda: t.fill_(300), lambda: t.__setitem__(0, 300), lambda: ps.asarray(1e300, "float32"),
              lambda: ps.constant(300, dtype="int8"), lambda: u.fill_(float("inf"))):
        with pytest.raises(OverflowError, match="got .*, expected"):
            f()
    for f in (lambda: ps.asarray([1.5], dtype=int), lambda: u.fill_(float("nan")), lambda: u.copy_([0.5, 1]),
              lambda: ps.full(2, 1j, float), lambda: u.__setitem__(0, 1.5)):
        with pytest.raises(ps.DTypeError, match="got .*, expected"):
            f()
    assert t.tolist() == [0, 0] and u.tolist() == [0, 0]
    assert ps.asarray([0.1], "float32").tolist() == [np.float32(0.1)]
    assert ps.asarray([2**53 + 1], float).tolist() == [2.0**53] and ps.asarray([1.0, 2], "int8").tolist() == [1, 2]
    assert ps.full(1, 0.1, "complex64").dtype == "complex64" and u.fill_(2.0).tolist() == [2, 2]
    # Arrays are converted as by astype().
    assert ps.asarray(np.array([1.5, 300.0]), "int8").tolist()[0] == 1


def test_making():
    assert ps.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert ps.eye(2).tolist() == [[1, 0], [0, 1]]
    assert ps.full((2,), 3).dtype == "int64" and ps.full(2, 1.5, "float32").dtype == "float32"
    a, b = ps.random_normal(5, key=3), ps.random_normal(5, key=3)
    assert ps.equal(a, b) and not ps.equal(a, ps.random_normal(5, key=4))
    assert ps.allclose(a, np.asarray(a) + 1e-12)
    with pytest.raises(ps.errors.ValueError):
        ps.zeros(-1)


def test_pickles_keep_sharing_and_the_bytes_in_use_only():
    t = ps.arange(1000, "float64")
    a, b = pickle.loads(pickle.dumps([t, t[1:]]))
    a.fill_(3)
    assert b.tolist() == [3] * 999 and t.tolist() == list(range(1000))
    assert len(pickle.dumps(ps.zeros(1000)[10:20])) < 500
    buffers = []
    data = pickle.dumps(t, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 500 and sum(memoryview(x).nbytes for x in buffers) == 8000
    assert pickle.loads(data, buffers=buffers).tolist() == t.tolist()


def test_memory_limits_and_scopes():
    with ps.MemoryScope() as m:
        t = ps.zeros(1000)
        assert m.peak_bytes == 8000
        del t
    assert m.allocated_bytes == 8000 and m.calls == 1
    with ps.MemoryLimit(100):
        with pytest.raises(MemoryError):
            ps.zeros(1000)
    with ps.MemoryLimit("1k"), pytest.raises(MemoryError):
        ps.zeros(1000)
    ps.zeros(1000)
    for bytes, error in ((-1, ValueError), ("much", ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="bytes"):
            ps.MemoryLimit(bytes)


WRITES = {
    "fill_": lambda t: t.fill_(2.0),
    "copy_": lambda t: t.copy_(np.full(t.shape, 2.0)),
    "item": lambda t: t.__setitem__(..., 2.0),
    "view": lambda t: t.T[:, None].squeeze(1).T.view((6,)).fill_(2.0),
    "rows": lambda t: [row.fill_(2.0) for row in t],
    "alias": lambda t: copy.copy(t).view((3, 2)).fill_(2.0),
    "call_into": lambda t: ps.function([], ps.ops.full((2, 3), 2.0)).call_into(t),
    "apply": lambda t: ps.Scalar(2.0, "NM").apply(np.ones((2, 3)), t),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_borrowed_tensors_are_reported(write):
    s = ps.shared(np.ones((2, 3)))
    for make in (lambda A: A.weight.data, lambda A: s.get_value(borrow=True, return_internal_type=True)):
        s.set_value(np.ones((2, 3)))
        A = ps.Dense(s, "MN,N->M")
        N = A.N
        assert N(np.ones(3)).tolist() == [6, 6, 6]
        WRITES[write](make(A))
        assert N(np.ones(3)).tolist() == [24, 24, 24] == A.N(np.ones(3)).tolist()


def test_writes_that_are_not_to_the_borrowed_memory_are_not_reported():
    s = ps.shared(ps.ones(3))
    t, before = s.get_value(borrow=True), s.version
    t.lazy_clone().fill_(2.0)
    t.clone().zero_()
    s.get_value().fill_(2.0)
    assert s.version == before and s.get_value().tolist() == [1, 1, 1]
    t.zero_()
    assert s.version > before and s.get_value().tolist() == [0, 0, 0]
    kept = []
    s.modify(kept.append)
    before = s.version
    kept[0].fill_(3.0)
    assert s.version > before and s.get_value().tolist() == [3, 3, 3]
    del s
    t.fill_(1.0)
