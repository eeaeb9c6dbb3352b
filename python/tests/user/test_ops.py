# SPDX-License-Identifier: Apache-2.0
"""Ops written in Python: memory of the plan, declared aliases, exceptions, derivatives."""

import doctest
import gc
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref

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


KEEP = {
    "array": lambda inputs, outputs: inputs[0],
    "output": lambda inputs, outputs: outputs[0],
    "view": lambda inputs, outputs: inputs[0][1:],
    "buffer": lambda inputs, outputs: memoryview(inputs[0]),
    "base": lambda inputs, outputs: inputs[0].base,
    "array of the base": lambda inputs, outputs: np.asarray(outputs[0].base[0]),
    "interface": lambda inputs, outputs: inputs[0].__array_struct__,
    "tensor": lambda inputs, outputs: ps.asarray(inputs[0]),
    "tensor of an output": lambda inputs, outputs: ps.asarray(outputs[0]),
    "lazy clone": lambda inputs, outputs: ps.asarray(inputs[0]).lazy_clone(),
    "shared variable": lambda inputs, outputs: ps.shared(inputs[0]),
    "operator": lambda inputs, outputs: ps.Diagonal(inputs[0], "N"),
    "cycle": lambda inputs, outputs: _cycle(inputs[0]),
}


def _cycle(array):
    ring = [array]
    ring.append(ring)
    return ring


@pytest.mark.parametrize("what", KEEP)
def test_nothing_that_shows_the_memory_is_kept(what):
    kept = []

    class Keeps(Scale):
        def perform(self, node, inputs, outputs):
            outputs[0][...] = inputs[0]
            kept.append(KEEP[what](inputs, outputs))

    x = ps.dvector("x")
    f = ps.function([x], Keeps(1.0)(x * 2) + 1)
    with pytest.raises(ps.OpError, match="kept an array"):
        f(np.arange(1000.0))
    # Arrays that perform kept stay readable, and later calls do not write them.
    try:
        shown = np.array(kept[0] if not isinstance(kept[0], (tuple, list, ps.NamedLinop)) else 0.0)
    except (TypeError, ValueError):
        shown = np.zeros(1)
    if shown.size == 1000 and shown.dtype == float:
        with pytest.raises(ps.OpError):
            f(np.full(1000, 5.0))
        np.testing.assert_array_equal(shown, np.arange(1000.0) * 2)
        np.testing.assert_array_equal(np.asarray(kept[0]), shown)
    kept.clear()


def test_what_is_dropped_in_a_cycle_is_not_kept():
    class Drops(Scale):
        def perform(self, node, inputs, outputs):
            outputs[0][...] = inputs[0]
            _cycle(inputs[0])

    x = ps.dvector("x")
    assert ps.function([x], Drops(1.0)(x * 2))([1.0]).tolist() == [2]


def test_the_lists_of_perform_are_empty_afterwards():
    kept = []

    class Lists(Scale):
        def perform(self, node, inputs, outputs):
            outputs[0][...] = inputs[0]
            kept.extend((inputs, outputs))

    x = ps.dvector("x")
    assert ps.function([x], Lists(1.0)(x * 2))([1.0]).tolist() == [2]
    assert kept == [[], []]


@pytest.mark.parametrize("mode", ["FAST_RUN", "DebugMode", "FAST_COMPILE"])
def test_frames_of_an_exception_stay_readable(mode):
    class Fails(Scale):
        def perform(self, node, inputs, outputs):
            given, part, result = inputs[0], inputs[0][500:], outputs[0]
            result[...] = given
            raise LookupError("mine")

    x = ps.dvector("x")
    f = ps.function([x], Fails(1.0)(x * 2 + 1) * 3, mode=mode)
    a = np.arange(1000.0)
    with pytest.raises(LookupError, match="mine") as caught:
        f(a)
    del a, f
    others = [np.full(1000, 7.0) for _ in range(50)]  # arrays that would reuse freed memory
    frame = caught.tb
    while frame.tb_next:
        frame = frame.tb_next
    values = frame.tb_frame.f_locals
    np.testing.assert_array_equal(values["given"], np.arange(1000.0) * 2 + 1)
    np.testing.assert_array_equal(values["part"], np.arange(500.0, 1000) * 2 + 1)
    np.testing.assert_array_equal(values["result"], values["given"])
    assert len(values["inputs"]) == 1 and len(others) == 50


def test_memory_of_a_failed_call_is_given_up_with_its_exception():
    class Fails(Scale):
        def perform(self, node, inputs, outputs):
            raise LookupError("mine")

    x = ps.dvector("x")
    f = ps.function([x], Fails(1.0)(x * 2) * 3)

    def call():
        with pytest.raises(LookupError):
            f(np.ones(1000))

    call()
    gc.collect()
    before = ps.live_bytes()
    for _ in range(20):
        call()
    gc.collect()
    assert ps.live_bytes() == before


def test_results_of_another_shape_or_dtype_are_refused():
    x = ps.dvector("x")

    def gives(result):
        class Gives(Scale):
            def perform(self, node, inputs, outputs):
                outputs[0] = result(inputs[0])

        return ps.function([x], Gives(1.0)(x))

    with pytest.raises(ps.ShapeError, match=r"output 0: got an array of shape \(1,\), expected \(3,\)"):
        gives(lambda a: a[:1])(np.ones(3))
    with pytest.raises(ps.DTypeError, match="output 0: got an array of complex128, expected float64"):
        gives(lambda a: a * 1j)(np.ones(3))

    class Shortens(Scale):
        def perform(self, node, inputs, outputs):
            outputs.pop()

    with pytest.raises(ValueError, match="left 0 outputs, expected 1"):
        ps.function([x], Shortens(1.0)(x))(np.ones(3))


def test_exceptions_get_the_notes_of_the_step():
    class Fails(Scale):
        def perform(self, node, inputs, outputs):
            raise LookupError("mine")

    x = ps.dvector("x")
    f = ps.function([x], Fails(1.0)(x))
    with pytest.raises(LookupError) as caught:
        f([1.0])
    (note,) = caught.value.__notes__
    assert "in step 0: " in note and "input 0: x: float64 shape (1,)" in note
    assert note.endswith("in test_exceptions_get_the_notes_of_the_step") and "test_ops.py:" in note


@ps.as_op(out=lambda x: x)
def negated(x, out):
    np.negative(x, out=out)


class Power(ps.Op):
    __props__ = ("exponent", "name")

    def __init__(self, exponent, name="p"):
        self.exponent = exponent
        self.name = name

    def make_node(self, x):
        return ps.Apply(self, [x], [x.type])

    def infer_shapes(self, node, shapes):
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        np.power(inputs[0], self.exponent, out=outputs[0])


def test_ops_are_pickled():
    op = pickle.loads(pickle.dumps(Power(2)))
    assert op == Power(2) != Power(3) and op.exponent == 2
    assert pickle.loads(pickle.dumps(negated)) is negated
    x = ps.dvector("x")
    f = ps.function([x], negated(Power(2)(x)))
    g = pickle.loads(pickle.dumps(f))
    assert g([1.0, 3.0]).tolist() == [-1, -9]


PROGRAM = """
import pickle, sys
print(pickle.load(sys.stdin.buffer)([2.0]).tolist(), "my_ops" in sys.modules)
"""


def test_functions_of_own_ops_go_to_other_processes(tmp_path, monkeypatch):
    source = inspect.getsource(Power) + inspect.getsource(negated.function)
    (tmp_path / "my_ops.py").write_text("import numpy as np\nimport palimpsest as ps\n\n" + source)
    monkeypatch.syspath_prepend(str(tmp_path))
    my_ops = importlib.import_module("my_ops")
    x = ps.dvector("x")
    f = ps.function([x], my_ops.negated(my_ops.Power(2)(x)))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=pickle.dumps(f),
                          capture_output=True, env=environment)
    assert done.stdout.decode() == "[-4.0] True\n", done.stderr.decode()
    assert pickle.loads(pickle.dumps(my_ops.negated)) is my_ops.negated


def test_ops_that_are_no_names_are_not_saved(tmp_path):
    class Local(Scale):
        pass

    x = ps.dvector("x")
    f = ps.function([x], Local(1.0)(x))
    with pytest.raises(ps.FormatError, match="at the top of a module"):
        pickle.dumps(f)

    class Odd:
        def __repr__(self):
            return "<odd>"

    with pytest.raises(ps.FormatError, match="numbers, texts and tuples"):
        ps.function([x], Power(Odd())(x)).save(str(tmp_path / "f.pal"))


def test_classes_of_one_name_are_two():
    def define():
        class Same(Scale):
            pass

        return Same

    one, other = define(), define()
    x = ps.dvector("x")
    assert one(1.0) != other(1.0)
    steps = ps.function([x], one(1.0)(x) + other(1.0)(x)).dprint()
    assert steps.count(".Same") == 2


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


class Doubled(Scale):
    linear_in = {0: "complex"}

    def __init__(self):
        super().__init__(2.0)

    __props__ = ()


def test_linear_ops_make_operators_and_derivatives():
    A = ps.SimpleLinop(lambda x: Doubled()(x), ishape="N", oshape="N")
    assert A.H(np.array([1j, 2.0])).tolist() == [2j, 4]
    assert A.N(np.array([1.0, 2.0])).tolist() == [4, 8]
    assert ps.dot_test(A, sizes={"N": 5})
    x = ps.dvector("x")
    assert ps.is_linear(Doubled()(x), x) == "complex"

    class Not(Doubled):
        linear_in = {}

    assert ps.is_linear(Not()(x), x) == "no"

    class Wrong(Doubled):
        linear_in = {0: "yes"}

    with pytest.raises(ps.errors.ValueError, match="linear_in.*'complex'"):
        Wrong()(x)


def test_tangents():
    class Square(Scale):
        def perform(self, node, inputs, outputs):
            np.square(inputs[0], out=outputs[0])

        def pushforward(self, node, tangents):
            return [None if tangents[0] is None else 2 * node.inputs[0] * tangents[0]]

    x, t = ps.dvectors("x", "t")
    f = ps.function([x, t], ps.pushforward([Square(1.0)(x)], [x], [t])[0])
    assert f([3.0, 4.0], [1.0, 10.0]).tolist() == [6, 80]


def test_the_compiler_puts_ops_in_place():
    class Add(Scale):
        __props__ = ("factor", "in_place")

        def __init__(self, factor, in_place=False):
            super().__init__(factor)
            self.in_place = in_place
            if in_place:
                self.destroy_map = {0: [0]}

        def inplace_on_inputs(self, node, allowed):
            asked.append(allowed)
            return Add(self.factor, True) if 0 in allowed else None

        def perform(self, node, inputs, outputs):
            done.append(self.in_place)
            np.add(inputs[0], self.factor, out=inputs[0] if self.in_place else outputs[0])

    asked, done = [], []
    x = ps.dvector("x")
    a = np.ones(3)
    f = ps.function([x], ps.ops.exp(Add(1.0)(x * 2)))
    np.testing.assert_allclose(f(a), np.exp(a * 2 + 1))
    assert asked and done == [True] and a.tolist() == [1, 1, 1]
    # An argument belongs to the caller and is not overwritten.
    del done[:]
    assert ps.function([x], Add(1.0)(x))(a).tolist() == [2, 2, 2]
    assert done == [False] and a.tolist() == [1, 1, 1]
    s = ps.shared(np.zeros(2))
    step = ps.function([], None, updates={s: Add(1.0)(s)})
    step(), step()
    assert s.get_value().tolist() == [2, 2]


@pytest.mark.parametrize("thread_safe", [True, False])
def test_calls_of_an_op_exclude_one_another(thread_safe):
    class Slow(Scale):
        def perform(self, node, inputs, outputs):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1
            outputs[0][...] = inputs[0]

    Slow.thread_safe = thread_safe
    inside = most = 0
    x = ps.dvector("x")
    functions = [ps.function([x], Slow(1.0)(x)) for _ in range(4)]
    threads = [threading.Thread(target=f, args=(np.ones(2),)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most > 1) == thread_safe


def test_views_are_handed_over_where_they_are_declared():
    class Reversed(Scale):
        view_map = {0: [0]}

        def perform(self, node, inputs, outputs):
            outputs[0] = inputs[0][::-1]

    class Undeclared(Reversed):
        view_map = {}

    x = ps.dmatrix("x")
    a = np.arange(6.0).reshape(3, 2)
    for kind in (Reversed, Undeclared):
        np.testing.assert_array_equal(ps.function([x], kind(1.0)(x))(a), a[::-1])
        np.testing.assert_array_equal(ps.function([x], kind(1.0)(x * 3.0) + 1.0)(a), 3 * a[::-1] + 1)
        np.testing.assert_array_equal(ps.function([x], kind(1.0)(kind(2.0)(x)))(a), a)
    np.testing.assert_array_equal(ps.function([x], Reversed(1.0)(x), mode="DebugMode")(a), a[::-1])
    with pytest.raises(ps.DebugModeError, match="(?i)view"):
        ps.function([x], Undeclared(1.0)(x), mode="DebugMode")(a)


def _cycles():
    """Functions that each make a reference cycle through C++ and return an object that ends with it."""
    x = ps.dvector("x")

    def op():
        own = Scale(2.0)
        own.f = ps.function([x], own(x + 1) * 2, updates=[(ps.shared(np.ones(2)), own(x))])
        assert own.f([1.0, 2.0]).tolist() == [8, 12]
        return own

    def copied():
        own = Scale(2.0)
        own.f = ps.function([x], own(x)).copy()
        return own

    def method():
        own = Scale(2.0)
        own.f = ps.function([x], x + 1, mode=ps.MonitorMode(post=own.infer_shapes).including("a"))
        return own

    def mode():
        own = Scale(2.0)
        own.mode = ps.MonitorMode(pre=own.infer_shapes, post=own.make_node).exact
        return own

    return {f.__name__: f for f in (op, copied, method, mode)}


@pytest.mark.parametrize("name", list(_cycles()))  # names only: the mark outlives the objects
def test_cycles_through_functions_are_collected(name):
    gone = weakref.ref(_cycles()[name]())
    gc.collect()
    assert gone() is None


def test_an_op_lives_as_long_as_its_function():
    x = ps.dvector("x")
    z = ps.dvector("z")
    y = Scale(3.0)(x)
    f = ps.function([x], {"y": y, "z": z * y}, givens={z: y + 1})
    g = f.copy()
    inner = ps.function([y], y + 1)  # an input that an op computes
    del y
    for _ in range(2):
        gc.collect()
        assert g([1.0])["z"].tolist() == [12] and inner([1.0]).tolist() == [2]
        f = None
    assert pickle.loads(pickle.dumps(g))([1.0])["y"].tolist() == [3]


def test_a_callback_lives_as_long_as_its_function():
    seen = []
    x = ps.dvector("x")
    f = ps.function([x], x + 1, mode=ps.MonitorMode(post=lambda *step: seen.append(step[0])))
    gc.collect()
    f([1.0])
    assert seen == [0]


class Sorted(ps.Op):
    def __init__(self, bytes_per_element=8):
        self.bytes_per_element = bytes_per_element

    def make_node(self, x):
        return ps.Apply(self, [x], [x.type])

    def infer_shapes(self, node, shapes):
        return [shapes[0]]

    def scratch_bytes(self, node, shapes):
        return self.bytes_per_element * shapes[0][0]

    def perform(self, node, inputs, outputs, scratch):
        mine = scratch.view("float64")
        mine[...] = inputs[0]
        mine.sort()
        outputs[0][...] = mine


def test_scratch_is_memory_of_the_plan():
    x = ps.dvector("x")
    f = ps.function([x], Sorted()(x))
    a = np.random.default_rng(1).normal(size=1000)
    with ps.MemoryScope() as scope:
        y = f(a)
    assert np.array_equal(y, np.sort(a))
    assert scope.peak_bytes == f.plan(a).peak_bytes == 2 * a.nbytes  # result and scratch
    assert f(np.ones(0)).size == 0
    checked = ps.function([x], Sorted()(x), mode=ps.DebugMode())
    assert np.array_equal(checked(a), y)


@pytest.mark.parametrize("bytes_per_element, error, text", [
    (-1, ValueError, "scratch_bytes: got -1000, expected a number of bytes from 0 on"),
    (0.5, TypeError, "expected a number of bytes from scratch_bytes"),
    (2**52, ps.OutOfMemory, "no more memory"),
])
def test_sizes_of_scratch_that_cannot_be(bytes_per_element, error, text):
    x = ps.dvector("x")
    with pytest.raises(error, match=text):
        ps.function([x], Sorted(bytes_per_element)(x))(np.ones(1000))


def test_scratch_that_is_kept_is_refused():
    class Keeper(Sorted):
        def perform(self, node, inputs, outputs, scratch):
            self.kept = scratch[:2]
            outputs[0][...] = 0

    x = ps.dvector("x")
    with pytest.raises(ps.OpError, match="kept"):
        ps.function([x], Keeper()(x))(np.ones(3))


def test_an_operator_whose_function_refers_weakly_to_its_holder_is_freed():
    class Holder:
        def __init__(self):
            me = weakref.ref(self)
            self.factor = 2.0
            self.A = ps.SimpleLinop(lambda x: x * me().factor, ishape="N")

    holder = Holder()
    assert holder.A(np.ones(2)).tolist() == [2, 2]
    gone = weakref.ref(holder)
    del holder
    assert gone() is None


def test_notes_that_are_no_list_are_left_alone():
    class Fails(Scale):
        def perform(self, node, inputs, outputs):
            error = LookupError("mine")
            error.__notes__ = "a text"
            raise error

    x = ps.dvector("x")
    with pytest.raises(LookupError) as caught:
        ps.function([x], Fails(1.0)(x))([1.0])
    assert caught.value.__notes__ == "a text"


def _op_with(**methods):
    return type("Given", (Scale,), methods)(1.0)


@pytest.mark.parametrize("shapes", [lambda s: None, lambda s: [(-1,)], lambda s: [(None,)], lambda s: [("a",)]])
def test_what_are_no_shapes_is_refused(shapes):
    op = _op_with(infer_shapes=lambda self, node, given: shapes(given))
    x = ps.dvector("x")
    f = ps.function([x], op(x))
    with pytest.raises(ps.OpError, match=r"Given\] infer_shapes"):
        f(np.ones(3))


@pytest.mark.parametrize("shapes", [lambda s: [], lambda s: s * 2, lambda s: [(3, 3)], lambda s: [()]])
def test_shapes_that_do_not_fit_the_outputs_are_refused(shapes):
    op = _op_with(infer_shapes=lambda self, node, given: shapes(given))
    x = ps.dvector("x")
    with pytest.raises(ps.ShapeError, match=r"Given\] infer_shapes"):
        ps.function([x], op(x))(np.ones(3))
    with pytest.raises(ps.InvalidValueError, match="inferred shape"):
        ps.function([x], op(x), mode="DebugMode")(np.ones(3))


@pytest.mark.parametrize("given, error, text", [
    ([], TypeError, "got a list of 0, expected a list of 1"),
    (None, TypeError, "got NoneType, expected a list of 1"),
    ([np.ones((2, 2))], ps.ShapeError, r"for input 0: got float64 \(2, 2\), expected float64"),
    ([np.ones(3) * 1j], ps.DTypeError, "for input 0: got complex128"),
])
def test_derivatives_that_do_not_fit_are_refused(given, error, text):
    x = ps.dvector("x")
    op = _op_with(pullback=lambda self, node, cotangents: given)
    with pytest.raises(error, match=r"Given\] pullback.*" + text):
        ps.grad(ps.ops.sum(op(x)), x)
    op = _op_with(pushforward=lambda self, node, tangents: given)
    with pytest.raises(error, match=r"Given\] pushforward.*" + text.replace("input", "output")):
        ps.pushforward([op(x)], [x], [x])
