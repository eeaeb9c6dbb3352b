# SPDX-License-Identifier: Apache-2.0
"""Objects that are accepted as arrays, and that they are not copied."""

import array
import gc
import pickle
import sys
import threading
import weakref

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

import palimpsest as ps

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128"]


def address(a):
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_shown_in_place(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    t = ps.asarray(a)
    assert t.shape == (2, 3) and t.dtype == dtype and t.strides == a.strides
    assert t.data_ptr() == address(a)
    assert np.array_equal(np.asarray(t), a)


@st.composite
def views(draw):
    """Arrays of any order, stride, offset and size, empty and 0-d ones too."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    base = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    if draw(st.booleans()):
        base = base.copy(order="F")
    index = tuple(draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None),
                                        slice(None, None, 2)])) for _ in shape)
    return base[(*index, ...)].transpose(draw(st.permutations(range(len(shape)))))


@given(views())
def test_views_come_in_and_go_out_unchanged(a):
    with ps.CopyStats() as copies:
        t = ps.asarray(a)
        assert t.tolist() == a.tolist()
    assert copies.import_copies == 0
    if a.size:
        assert t.data_ptr() == address(a)
        assert t.strides == a.strides
    out = np.asarray(t)
    assert out.dtype == a.dtype and np.array_equal(out, a)


def strange_arrays():
    record = np.zeros(4, dtype=[("tag", "i1"), ("value", "f8")])
    record["value"] = [1, 2, 3, 4]
    unaligned = np.frombuffer(bytes(1) + np.arange(3.0).tobytes(), dtype="f8", offset=1)
    return {
        "byte order": np.arange(3, dtype=">f8"),
        "field of a record": record["value"],
        "unaligned": unaligned,
        "complex byte order": (np.arange(4) + 1j).astype(">c8"),
    }


@pytest.mark.parametrize("name", strange_arrays())
def test_what_no_tensor_can_show_is_copied_once_and_counted(name):
    a = strange_arrays()[name]
    with ps.CopyStats() as copies:
        t = ps.asarray(a)
    assert copies.import_copies == 1
    assert np.array_equal(np.asarray(t), a)
    with pytest.raises(ValueError, match="cannot be used in place"):
        ps.asarray(a, copy=False)
    x = ps.tensor(a.dtype.newbyteorder("="), (None,) * a.ndim, "x")
    own = ps.shared(np.array(a, a.dtype.newbyteorder("=")), strict=True)
    strict = ps.function([ps.In(x, strict=True)], x)
    for use in (lambda: ps.shared(a, borrow=True), lambda: ps.shared(a, strict=True), lambda: strict(a),
                lambda: strict(x=a), lambda: pickle.loads(pickle.dumps(strict))(a), lambda: own.set_value(a),
                lambda: own.set_value(a, borrow=True), lambda: own.exchange(a),
                lambda: ps.In(x, value=a, strict=True)):
        with ps.CopyStats() as copies, pytest.raises(ValueError, match="cannot be used in place"):
            use()
        assert copies.import_copies == 0
    own.set_value(np.asarray(t))


@pytest.mark.parametrize("bad, hint", [
    (np.ones(2, "f2"), "float32"), (np.ones(2, "g"), "float64"), (np.array(["a"]), "dtype|elements"),
    (np.array([object()]), "elements"), (np.zeros(2, "M8[s]"), "elements"),
    (np.zeros(2, [("a", "f8")]), "elements"),
])
def test_dtypes_that_there_are_not(bad, hint):
    with pytest.raises(ps.errors.DTypeError, match=hint):
        ps.asarray(bad)
    with pytest.raises(TypeError):
        ps.asarray(bad)


def test_masked_arrays_are_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"\.filled\(\)"):
        ps.asarray(np.ma.masked_array([1.0, 2.0], [True, False]))


@pytest.mark.parametrize("bad", ["text", b"bytes", object(), {1: 2}, {1, 2}, None, [None], [["a"]]])
def test_what_is_no_array(bad):
    with pytest.raises(TypeError):
        ps.asarray(bad)


def test_lists_and_numbers():
    assert ps.asarray([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert ps.asarray([[1, 2], [3, 4]]).dtype == "int64"
    assert ps.asarray([1, 2.5]).dtype == "float64"
    assert ps.asarray([1, 2j]).dtype == "complex128"
    assert ps.asarray([True, False]).dtype == "bool"
    assert ps.asarray(2**63).dtype == "uint64"
    assert ps.asarray([]).shape == (0,)
    assert ps.asarray([[], []]).shape == (2, 0)
    assert ps.asarray(((1, 2), [3, 4])).shape == (2, 2)
    assert ps.asarray([np.ones(2), np.zeros(2)]).shape == (2, 2)
    assert ps.asarray(range(3)).tolist() == [0, 1, 2]
    with pytest.raises(OverflowError):
        ps.asarray(2**64)


@pytest.mark.parametrize("ragged", [[[1, 2], [3]], [1, [2]], [[1], 2], [[[1]], [[2, 3]]], [[], [1]]])
def test_ragged_lists(ragged):
    with pytest.raises(ps.errors.ShapeError, match="differ in length"):
        ps.asarray(ragged)


def test_lists_that_contain_themselves_end():
    a = []
    a.append(a)
    with pytest.raises(ps.errors.Error):
        ps.asarray(a)


def test_scalars_of_numpy_are_arrays_of_their_dtype():
    for dtype in DTYPES:
        t = ps.asarray(np.dtype(dtype).type(1))
        assert t.shape == () and t.dtype == dtype and t.item() == 1


def test_other_protocols():
    class Interface:
        def __init__(self, a):
            self.a = a
            self.__array_interface__ = a.__array_interface__

    class Protocol:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    class Dlpack:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **kw):
            return self.a.__dlpack__(**kw)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    a = np.arange(4.0)
    assert ps.asarray(Dlpack(a)).data_ptr() == address(a)
    assert ps.asarray(Protocol()).tolist() == [0, 1, 2]
    assert ps.asarray(array.array("d", [1, 2])).tolist() == [1, 2]
    assert ps.asarray(memoryview(a)).data_ptr() == address(a)
    assert ps.asarray(bytearray(b"\1\2")).tolist() == [1, 2]
    with pytest.raises(TypeError):
        ps.asarray(Interface)  # the class, not an object of it


def test_read_only_arrays_are_never_written():
    a = np.arange(4.0)
    a.flags.writeable = False
    t = ps.asarray(a)
    t.fill_(7)
    assert a.tolist() == [0, 1, 2, 3] and t.tolist() == [7] * 4
    b = np.arange(4.0)
    ps.asarray(b).fill_(7)
    assert b.tolist() == [7] * 4


@pytest.mark.parametrize("make", [
    lambda base: base[1:], lambda base: base[:, None][1:, 0], lambda base: np.frombuffer(memoryview(base))[1:]])
def test_read_only_views_of_what_others_write_are_read_in_place_and_kept_as_copies(make):
    base = np.arange(4.0)
    view = make(base)
    view.flags.writeable = False
    t, x = ps.asarray(view), ps.dvector("x")
    assert t.data_ptr() == view.ctypes.data
    kept = {"constant": ps.function([], ps.constant(view)), "parameter": lambda: ps.Diagonal(view, "N")(np.ones(3)),
            "clone": t.lazy_clone().numpy, "shared": ps.shared(view).get_value}
    A, same = ps.Diagonal(view, "N"), ps.function([x], x, returns="tensor")(view)
    borrowed = ps.shared(view, borrow=True)
    doubled = ps.function([], 2 * borrowed)
    kept["parameter"] = lambda: A(np.ones(3))
    kept["result"] = same.numpy
    base[:] = 7
    for name, value in kept.items():
        assert (name, value().tolist()) == (name, [1, 2, 3])
    assert t.tolist() == [7, 7, 7] and doubled().tolist() == [14, 14, 14]
    borrowed.modify(lambda value: value.fill_(1))
    assert base.tolist() == [7] * 4 and doubled().tolist() == [2, 2, 2]
    frozen = ps.asarray(view, frozen=True)
    assert ps.Diagonal(frozen, "N").weight.data_ptr() == view.ctypes.data
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert ps.Diagonal(fixed[1:], "N").weight.data_ptr() == fixed[1:].ctypes.data


def test_the_array_lives_as_long_as_a_tensor_shows_it():
    class Subclass(np.ndarray):
        pass

    a = np.arange(4.0).view(Subclass)
    ref = weakref.ref(a)
    t = ps.asarray(a)
    view = t[1:]
    del a, t
    assert ref() is not None and view.tolist() == [1, 2, 3]
    del view
    assert ref() is None


def test_references_are_given_back_on_any_thread():
    a = np.arange(4.0)
    before = sys.getrefcount(a)
    box = [ps.asarray(a) for _ in range(100)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert sys.getrefcount(a) == before


def test_two_views_of_one_array_are_aliases():
    a = np.arange(4.0)
    assert ps.asarray(a[:2]).may_share_memory(ps.asarray(a[:3]))
    assert not ps.asarray(a[:2]).overlaps(ps.asarray(a[2:]))


def test_names_of_a_dtype():
    for name in ("float32", np.float32, np.dtype("f4"), ps.float32, "<f4", "f"):
        assert ps.zeros(1, name).dtype is ps.float32


def test_types_of_python_are_dtypes():
    kinds = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
    for kind, name in kinds.items():
        assert ps.zeros(1, kind).dtype == name
    assert ps.float32 == np.dtype("float32") == "float32"
    assert hash(ps.float32) == hash("float32")
    assert np.zeros(1, ps.complex64).dtype == "complex64"
    for bad in ("float16", "flaot32", np.dtype("O"), list, 3):
        with pytest.raises(ps.errors.DTypeError):
            ps.zeros(1, bad)
    assert ps.float32 != "nonsense" and ps.float32 != 3


def test_frozen_memory_is_shared_without_a_copy():
    a = np.arange(3.0)
    t = ps.asarray(a, frozen=True)
    assert t.data_ptr() == a.ctypes.data
    with ps.CopyStats() as copies:
        s, A = ps.shared(t), ps.Diagonal(t, "N")
    assert copies.copies == 0 and A.weight.data_ptr() == a.ctypes.data
    s.modify(lambda value: value.fill_(7))
    t.fill_(9)  # gets memory of its own
    assert a.tolist() == [0, 1, 2] and A(np.ones(3)).tolist() == [0, 1, 2]
    own = ps.ones(2)
    assert ps.asarray(own, frozen=True).is_alias_of(own)


def test_imports_of_one_buffer_are_aliases():
    a = np.arange(4.0)
    assert ps.asarray(a[:3]).is_alias_of(ps.asarray(a[1:]))
    assert not ps.asarray(a[:2]).is_alias_of(ps.asarray(a[2:]))


def test_borrowed_parameters_see_what_is_written():
    w = np.ones(2)
    A = ps.Diagonal(ps.borrow(w), "N")
    w[0] = 5
    assert A([1.0, 1.0]).tolist() == [5, 1] and A.weight.data_ptr() == w.ctypes.data
    w.flags.writeable = False
    with pytest.raises(ps.errors.ValueError, match="borrow.*read-only"):
        ps.borrow(w)


def test_arrays_and_those_of_derived_classes_come_in_alike():
    class Derived(np.ndarray):
        pass

    for dtype in ("longlong", "ulonglong", "intc", "float32", "complex128", "bool"):
        a = np.zeros((3, 4), dtype)[1:, ::-2]
        a.flags.writeable = dtype != "float32"
        for given in (a, a.view(Derived), a[:0], a[0, 0, ...]):
            t = ps.asarray(given)
            assert t.dtype == given.dtype and t.shape == given.shape and t.data_ptr() == given.ctypes.data
            assert given.size == 0 or t.strides == given.strides
