# SPDX-License-Identifier: Apache-2.0
"""Tools that look at any object: completion, debuggers, inspect, help. Calls of any class with any arguments."""

import inspect
import pydoc

import numpy as np
import pytest

import palimpsest as ps

x = ps.dvector("x")
f = ps.function([x], 2 * x)
A = ps.Dense(np.eye(3)) | ps.Diagonal(np.ones(3), "M")
result = ps.conjugate_gradients(ps.Dense(np.eye(3)), np.ones(3))

OBJECTS = {
    "input": x, "constant": ps.constant(1.0), "computed": x + 1, "indexed": x[0], "shared": ps.shared(1.0),
    "function": f, "profiled": ps.function([x], x, profile=True), "graph": f.graph, "step": f.steps[0],
    "operator": A, "adjoint": A.H, "normal": A.N, "child": A[0], "identity": ps.Identity("N"),
    "parameter": A[0].weight, "tensor": ps.ones(2), "scalar": ps.ones(()), "empty": ps.empty(0),
    "storage": ps.ones(2).storage, "view": ps.ones((2, 3)).T, "dtype": ps.float32, "dims": ps.Dims("N M"),
    "dimension": ps.ND("N"), "shape": ps.NS("N", "M"), "type": x.type, "in": ps.In(x), "out": ps.Out(x),
    "mode": ps.FAST_RUN, "debug_mode": ps.DebugMode(), "plan": A.plan(np.ones(3)),
    "solve_plan": ps.plan(ps.cg, ps.Dense(np.eye(3)), np.ones(3)), "result": result,
    "history": result.history, "prox": ps.L1(), "objective": ps.Objective(ps.Identity("N")),
    "random": ps.RandomState(3), "config": ps.config, "tag": x.tag, "module": ps, "ops": ps.ops,
    "dot_test": ps.dot_test(A), "report": ps.check_contract(A), "team": ps.Team.pretend({"rank": 2}),
    "batch_spec": ps.BatchSpec({"N": 2}), "error": ps.ShapeError("a"), "budget_error": ps.BudgetError("a"),
    "factory": ps.Dense,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_members_can_be_looked_at(name):
    thing = OBJECTS[name]
    members = dict(inspect.getmembers(thing))
    assert members
    for member in dir(thing):
        hasattr(thing, member)
    assert not hasattr(thing, "no_member") and repr(thing) is not None
    pydoc.render_doc(thing)


def test_what_is_missing_says_why():
    assert not hasattr(x, "data") and ps.constant(1.0).data == 1
    with pytest.raises(AttributeError, match=r"\[data\] x has no value before it is computed.*Try function\(\)"):
        _ = x.data
    assert not hasattr(f, "profile") and OBJECTS["profiled"].profile.calls == 0
    with pytest.raises(AttributeError, match="profile=True"):
        _ = f.profile


CLASSES = [value for name, value in sorted(vars(ps).items())
           if inspect.isclass(value) and not name.startswith("_") and value.__module__.startswith("palimpsest._core")]


class Odd:
    pass


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
@pytest.mark.parametrize("arguments, named", [
    ((), {}), ((Odd(),), {}), ((Odd(),) * 9, {}), ((), {"no_such_argument": 3}), ((None, None), {"dtype": Odd()})],
    ids=["none", "other", "many", "unknown", "odd"])
def test_a_class_says_what_is_wrong_first(made, arguments, named):
    try:
        made(*arguments, **named)
    except (TypeError, ValueError) as error:
        text = str(error)
        assert text.startswith("[") and "incompatible" not in text.split("\n")[0], text
        assert "no constructor" not in text and "nanobind" not in text


def test_classes_without_a_constructor_in_nanobind():
    assert len(CLASSES) > 40
    for made in (ps.NamedLinop, ps.Plan, ps.Function, ps.SolveResult):
        with pytest.raises(ps.Error, match="got a call of the class, expected one of the functions that make it"):
            made()


@pytest.mark.parametrize("call, text", [
    (lambda: A(np.ones(3), out=np.zeros(3)),
     "[NamedLinop] got an unknown argument 'out', expected x. Try A.apply(x, out)."),
    (lambda: A(), "[NamedLinop] x: got nothing, expected"),
    (lambda: A(1, 2), "[NamedLinop] got 2 arguments, expected at most 1."),
    (lambda: ps.In(), "[In] variable: got nothing, expected a value.\n__init__()"),
    (lambda: ps.Parameter(), "[Parameter] value: got nothing, expected a value."),
    (lambda: ps.TensorType("float64"), "[TensorType] shape: got nothing"),
    (lambda: ps.BatchSpec(), "[BatchSpec] sizes: got nothing"),
    (lambda: ps.Objective(), "[Objective] "),
    (lambda: ps.MemoryLimit(), "[MemoryLimit] "),
])
def test_texts_of_calls(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value).startswith(text), str(caught.value)


@pytest.mark.parametrize("name", ["Dense", "Diagonal", "Sampling", "Fft", "conjugate_gradients", "from_functions"])
def test_help_shows_the_signature_first(name):
    lines = pydoc.plain(pydoc.render_doc(getattr(ps, name))).splitlines()
    assert lines[2].startswith(name + "(") and len(inspect.signature(getattr(ps, name)).parameters) > 1


def test_constructors_have_signatures():
    assert list(inspect.signature(ps.In.__init__).parameters)[:2] == ["self", "variable"]
    assert "Parameters" in ps.BatchSpec.__doc__


def test_only_arrays_become_arrays():
    """NumPy takes an object with a length and items for a list."""
    for name in ("function", "operator", "normal", "plan", "solve_plan", "mode", "in", "out", "prox", "objective"):
        try:
            array = np.asarray(OBJECTS[name])
        except TypeError:
            continue
        assert array.dtype == object and array.shape == (), name
