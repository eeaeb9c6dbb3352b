# SPDX-License-Identifier: Apache-2.0
"""What the pages on memory, views and work in place say, under the replacements that are permitted:
`import palimpsest as pytensor`, `palimpsest.ops` for `pytensor.tensor`, `palimpsest` for
`pytensor.compile.io`."""

import numpy
import numpy as np
import pytest

import palimpsest as pytensor
import palimpsest.ops as pt
from palimpsest import In, Out
from palimpsest.ops import dscalars, log
from palimpsest.ops.inplace import add_inplace

ps = pytensor


def test_borrowing_when_a_shared_variable_is_made():
    np_array = numpy.ones(2, dtype="float32")
    s_default = pytensor.shared(np_array)
    s_false = pytensor.shared(np_array, borrow=False)
    s_true = pytensor.shared(np_array, borrow=True)
    np_array += 1
    assert [s.get_value().tolist() for s in (s_default, s_false, s_true)] == [[1, 1], [1, 1], [2, 2]]


def test_borrowing_when_a_value_is_read():
    np_array = numpy.ones(2, dtype="float32")
    s = pytensor.shared(np_array)
    v_false = s.get_value(borrow=False)
    v_true = s.get_value(borrow=True)
    v_internal = s.get_value(borrow=True, return_internal_type=True)
    v_false += 1
    assert s.get_value().tolist() == [1, 1]
    v_true += 1
    assert s.get_value().tolist() == [2, 2]
    assert isinstance(v_internal, ps.Tensor) and v_internal.data_ptr() == v_true.ctypes.data
    copied = s.get_value(borrow=False, return_internal_type=True)
    copied.fill_(0)
    assert s.get_value().tolist() == [2, 2]


def test_borrowing_when_a_value_is_set():
    def some_inplace_fn(array):
        array *= 3
        return array

    s = pytensor.shared(numpy.ones(2, dtype="float32"))
    before = s.get_value(borrow=True)
    with ps.CopyStats() as copies:
        s.set_value(some_inplace_fn(s.get_value(borrow=True)), borrow=True)
    assert s.get_value().tolist() == [3, 3] and before.tolist() == [3, 3]
    assert copies.copies + copies.import_copies == 0


def test_borrowing_when_a_function_is_made():
    x = pt.matrix()
    y = 2 * x
    f = pytensor.function([In(x, borrow=True)], Out(y, borrow=True))
    given = numpy.ones((2, 2), dtype=x.dtype.name)
    first = f(given)
    assert first.tolist() == [[2, 2], [2, 2]]
    second = f(numpy.full((2, 2), 3, dtype=x.dtype.name))
    assert second.tolist() == [[6, 6], [6, 6]]
    internal = pytensor.function([x], Out(y, borrow=True, return_internal_type=True))
    assert numpy.asarray(internal(given)).shape == (2, 2)


def test_work_in_place_reads_before_it_writes():
    x, y = dscalars("x", "y")
    r1 = log(x)
    r2 = add_inplace(x, y)
    r3 = log(x)
    r4 = log(r2)
    f = pytensor.function([In(x, mutable=True), y], [r1, r2, r3, r4], accept_inplace=True)
    a, b = 2.0, 5.0
    found = [float(r) for r in f(numpy.array(a), b)]
    assert found == [numpy.log(a), a + b, numpy.log(a), numpy.log(a + b)]
    with pytest.raises(ps.Error, match="accept_inplace|in.?place"):
        pytensor.function([In(x, mutable=True), y], r2)


class MyOp(pytensor.Op):
    """An op of two inputs and two outputs, with the alias maps that a test assigns."""

    def make_node(self, a, b):
        return pytensor.Apply(self, [a, b], [a.type, b.type])

    def infer_shapes(self, node, shapes):
        return shapes

    def perform(self, node, inputs, outputs):
        for x, out in zip(inputs, outputs):
            if out.ctypes.data != x.ctypes.data:
                out[...] = x
            out += 1


MAPS = [
    {0: [0]}, {0: [1]}, {1: [0]}, {0: [0], 1: [1]}, {0: [0], 1: [0]}, {0: [0, 1]},
]


@pytest.mark.parametrize("field", ["view_map", "destroy_map"])
@pytest.mark.parametrize("given", MAPS, ids=str)
def test_maps_are_assigned(field, given):
    myop = MyOp()
    setattr(myop, field, given)
    a, b = pt.dvector("a"), pt.dvector("b")
    first, second = myop(a, b)
    assert (first.index, second.index) == (0, 1) and getattr(myop, field) == given


def test_an_op_that_declares_its_work_in_place_runs_after_the_readers():
    myop = MyOp()
    myop.destroy_map = {0: [0], 1: [1]}
    a, b = pt.dvector("a"), pt.dvector("b")
    before = a * 10
    first, second = myop(a, b)
    after = pt.log(first)
    f = pytensor.function([In(a, mutable=True), In(b, mutable=True)],
                          [before, first, second, after], accept_inplace=True)
    found = f(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_allclose(found[0], [10, 20])
    np.testing.assert_allclose(found[1], [2, 3])
    np.testing.assert_allclose(found[2], [4, 5])
    np.testing.assert_allclose(found[3], np.log([2, 3]))


def test_a_variable_can_be_made_indestructible():
    x, y = pt.dvector("x"), pt.dvector("y")
    z = x * 2
    z.tag.indestructible = True
    f = pytensor.function([x, y], [z, pt.exp(z + y)])
    np.testing.assert_allclose(f(np.ones(2), np.ones(2))[0], [2, 2])
    assert z.tag.indestructible


def test_copy_on_write():
    t = ps.ones(4)
    u = t.lazy_clone()
    assert u.storage_id != t.storage_id and u.data_ptr() == t.data_ptr()
    assert not u.is_alias_of(t)
    view = t[1:]
    assert view.is_alias_of(t) and view.storage_id == t.storage_id
    with ps.CopyStats() as copies:
        u[0] = 0
        t[1:] = 3  # the only owner by now
    assert copies.copies == 1
    assert u.tolist() == [0, 1, 1, 1] and t.tolist() == [1, 3, 3, 3] and view.tolist() == [3, 3, 3]
    reshaped = t.reshape((2, 2))
    assert reshaped.data_ptr() == t.data_ptr() and not reshaped.is_alias_of(t)
    reshaped.fill_(7)
    assert t.tolist() == [1, 3, 3, 3]


def test_lazy_copies_in_many_threads_are_independent():
    from concurrent.futures import ThreadPoolExecutor

    t = ps.asarray(np.arange(1000.0), copy=True)

    def work(k):
        mine = t.lazy_clone()
        mine.fill_(k)
        return mine.tolist() == [k] * 1000

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert t.tolist() == list(range(1000))
