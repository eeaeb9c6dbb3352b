# SPDX-License-Identifier: Apache-2.0
"""Pickles of functions and shared variables: values, sharing, and calls of the restored functions."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as po

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shared_variables(protocol):
    s = ps.shared(np.arange(3.0), "s", strict=True, shape=(None,))
    t = pickle.loads(pickle.dumps(s, protocol))
    assert t is not s and t.name == "s" and t.get_value().tolist() == [0, 1, 2]
    t.set_value(np.ones(5))
    assert s.get_value().tolist() == [0, 1, 2] and t.get_value().tolist() == [1] * 5
    with pytest.raises(TypeError):
        t.set_value(np.ones(2, "int32"))  # strict, as the first one
    both = pickle.loads(pickle.dumps([s, s], protocol))
    assert both[0] is both[1]


def test_shared_variables_keep_the_kind_of_their_value():
    s = pickle.loads(pickle.dumps(ps.shared(ps.ones(2))))
    assert isinstance(s.get_value(), ps.Tensor)
    number = pickle.loads(pickle.dumps(ps.shared(2.5, "n")))
    assert number.get_value() == 2.5 and number.ndim == 0


def test_deep_copies_of_shared_variables_are_independent():
    s = ps.shared(np.zeros(3), "s")
    t = copy.deepcopy(s)
    t.set_value(np.ones(3))
    assert s.get_value().tolist() == [0, 0, 0] and t.name == "s"
    assert copy.copy(s).get_value().tolist() == [0, 0, 0]


def _both(pair):
    """Copies of some objects, by copy.deepcopy and by each protocol."""
    yield copy.deepcopy(pair)
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(pair, protocol))


def test_functions_and_operators_share_what_their_originals_share():
    s = ps.shared(np.ones(3), "s")
    f, g = ps.function([], s, updates={s: s + 1}), ps.function([], s * 10)
    A = ps.Diagonal(s, "N")
    for h, k, t, B in _both([f, g, s, A]):
        assert h().tolist() == [1, 1, 1] and k().tolist() == [20, 20, 20]
        assert t.get_value().tolist() == [2, 2, 2] and B(np.ones(3)).tolist() == [2, 2, 2]
        t.set_value(np.zeros(3))
        assert k().tolist() == [0, 0, 0] == B.H(np.ones(3)).tolist()
    assert s.get_value().tolist() == [1, 1, 1] == A(np.ones(3)).tolist()


def test_pickles_of_earlier_versions():
    import palimpsest._pickles as pickles

    old = pickles.shared_of_value(ps.ones(2), "s", False, None, [None], 1)
    assert old.name == "s" and old.get_value().tolist() == [1, 1]
    data = ps.to_bytes(ps.Diagonal(np.ones(2), "N"))
    assert pickles.linop_of_bytes(data, ())([1.0, 2.0]).tolist() == [1, 2]


def test_default_updates_are_refused():
    s = ps.shared(0.0, "count")
    s.default_update = s + 1
    with pytest.raises(NotImplementedError, match="'count' with a default update"):
        pickle.dumps(s)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_functions(protocol):
    x, y = ps.dvector("x"), ps.dscalar("y")
    s = ps.shared(np.ones(2), "s")
    f = ps.function([x, ps.In(y, value=2.0)], {"sum": po.sum(x * y) + po.sum(s), "same": x}, updates={s: s * 2},
                    name="f")
    g = pickle.loads(pickle.dumps(f, protocol))
    assert repr(g) == repr(f)
    first = g([1.0, 2.0])
    assert first["sum"] == 8 and first["same"].tolist() == [1, 2] and g["s"].tolist() == [2, 2]
    assert g(x=[1.0, 1.0], y=0.0)["sum"] == 4
    assert s.get_value().tolist() == [1, 1]


def test_functions_keep_what_their_calls_are_like():
    x = ps.dvector("x")
    one = pickle.loads(pickle.dumps(ps.function([x], ps.Out(x * 2, borrow=True), returns="tensor")))
    assert isinstance(one([1.0]), ps.Tensor)
    nothing = pickle.loads(pickle.dumps(ps.function([x], None, on_unused_input="ignore")))
    assert nothing([1.0]) is None
    lent = ps.function([ps.In(x, mutable=True)], x * 2, accept_inplace=True)
    written = np.ones(3)
    pickle.loads(pickle.dumps(lent))(written)
    assert written.tolist() == [2, 2, 2]


def _call(f, value):
    return f(value).tolist()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_functions_are_sent_to_other_processes(method):
    x = ps.dvector("x")
    f = ps.function([x], po.cumsum(x, 0))
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(np.sum, ([1.0, 2.0],)) == 3
        assert pool.apply(f, ([1.0, 2.0],)).tolist() == [1, 3]


def test_types_and_names():
    for value in (ps.float32, ps.bool_, ps.complex128, ps.TensorType("float32", (2, None)),
                  ps.TensorType(ps.int8, (), "cpu:1"), ps.NamedShape("N", "MK"), ps.Dims("NM"), ps.ND("N1")):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(value, protocol)) == value
        assert copy.deepcopy([value])[0] == value
    assert pickle.loads(pickle.dumps(ps.float32)) is ps.float32
