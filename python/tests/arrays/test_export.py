# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy over tensors: writable, and never a way to write another tensor."""

import gc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import palimpsest as ps


def test_export_is_the_memory_itself():
    t = ps.arange(4, "float64")
    with ps.CopyStats() as copies:
        a = t.numpy()
    assert a.ctypes.data == t.data_ptr() and a.flags.writeable
    a[0] = 7
    assert t.tolist() == [7, 1, 2, 3]
    assert copies.copies == 0 and copies.eager_copies == 0


def test_export_of_shared_data_copies_once():
    t = ps.zeros(4)
    u = t.lazy_clone()
    with ps.CopyStats() as copies:
        n = np.asarray(t)
    assert copies.copies == 1
    n[0] = 1
    assert t.tolist() == [1, 0, 0, 0] and u.tolist() == [0] * 4


def test_clones_made_while_an_array_shows_the_memory_are_copies():
    t = ps.zeros(2)
    n = t.numpy()
    u = t.lazy_clone()
    n[0] = 1
    assert u.tolist() == [0, 0] and t.tolist() == [1, 0]
    del n
    gc.collect()
    v = t.lazy_clone()
    assert v.is_shared()


def test_read_only_export_never_copies():
    t = ps.zeros(4)
    u = t.lazy_clone()
    with ps.CopyStats() as copies:
        n = t.numpy(writable=False)
    assert copies.copies == 0 and copies.eager_copies == 0
    assert not n.flags.writeable and n.ctypes.data == u.data_ptr()
    with pytest.raises(ValueError):
        n[0] = 1


def test_memory_knows_where_it_came_from():
    t = ps.arange(10, "float64")
    n = t.numpy()
    back = ps.asarray(n[2:8:2])
    assert back.is_alias_of(t) and back.storage_id == t.storage_id
    assert back.tolist() == [2, 4, 6]
    assert ps.asarray(n.view("int64")).storage_id == t.storage_id
    del n, back
    gc.collect()
    assert ps.asarray(np.arange(3.0)).storage_id != t.storage_id


def test_views_of_one_storage_export_views_of_one_memory():
    t = ps.zeros((2, 3))
    whole, row = t.numpy(), t[1].numpy()
    row[:] = 5
    assert whole.tolist() == [[0, 0, 0], [5, 5, 5]]
    assert np.shares_memory(whole, row)


def test_expanded_tensors_go_out_read_only_or_as_copies():
    t = ps.zeros(1).expand((3,))
    assert np.asarray(t).tolist() == [0, 0, 0]
    with pytest.raises(ps.errors.AliasError):
        t.fill_(1)


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 cannot take read-only memory")
def test_dlpack():
    t = ps.arange(4, "float32")
    a = np.from_dlpack(t)
    assert a.ctypes.data == t.data_ptr()
    u = t.lazy_clone()
    assert np.from_dlpack(t).tolist() == [0, 1, 2, 3]
    assert t.__dlpack_device__() == (1, 0)
    del a
    shared = ps.zeros(4)
    other = shared.lazy_clone()
    with pytest.raises(BufferError, match="clone"):
        shared.__dlpack__()
    assert not np.from_dlpack(shared).flags.writeable
    with pytest.raises(BufferError):
        shared.__dlpack__(dl_device=(2, 0))
    assert np.from_dlpack(other, copy=True).flags.writeable
    assert u.tolist() == [0, 1, 2, 3]


def test_exports_do_not_pile_up():
    t = ps.zeros(1000)
    with ps.MemoryScope() as m:
        for _ in range(10000):
            t.numpy()
            np.asarray(ps.asarray(t.numpy()))
    assert m.allocated_bytes == 0


class Model:
    """Tensors, views, lazy clones and exported arrays beside arrays that are copied explicitly."""

    def __init__(self):
        self.pairs = []  # (tensor, its array in the model)
        self.exports = []  # (exported array, the same elements in the model)

    def add(self, tensor, array):
        self.pairs.append((tensor, array))

    def check(self):
        for tensor, array in self.pairs:
            assert tensor.tolist() == array.tolist()
        for exported, array in self.exports:
            assert exported.tolist() == array.tolist()


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(["view", "clone", "write", "export", "write export",
                                           "drop", "drop export", "import", "deep"]),
                          st.integers(0, 7), st.integers(1, 99)), max_size=25))
def test_random_programs_against_a_model_with_explicit_copies(program):
    model = Model()
    model.add(ps.arange(6, "float64"), np.arange(6.0))
    for action, which, value in program:
        if not model.pairs:
            break
        tensor, array = model.pairs[which % len(model.pairs)]
        if action == "view":
            model.add(tensor[1:], array[1:])
        elif action == "clone":
            model.add(tensor.lazy_clone(), array.copy())
        elif action == "deep":
            model.add(tensor.clone(), array.copy())
        elif action == "write":
            tensor.fill_(value)
            array[...] = value
        elif action == "export":
            model.exports.append((tensor.numpy(), array))
        elif action == "write export" and model.exports:
            exported, shown = model.exports[which % len(model.exports)]
            exported[...] = value
            shown[...] = value
        elif action == "drop":
            model.pairs.pop(which % len(model.pairs))
        elif action == "drop export" and model.exports:
            model.exports.pop(which % len(model.exports))
        elif action == "import" and model.exports:
            exported, shown = model.exports[which % len(model.exports)]
            model.add(ps.asarray(exported), shown)
        model.check()
