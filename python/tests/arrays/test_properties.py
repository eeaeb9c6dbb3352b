# SPDX-License-Identifier: Apache-2.0
"""Arrays of any form, random programs on tensors, random operators, and trees of shared data."""

import pickle

import hypothesis
import hypothesis.strategies as st
import numpy as np

import palimpsest as ps
import palimpsest.ops as po

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128"]


@st.composite
def arrays(draw, dtypes=DTYPES, max_rank=4):
    """Of any dtype, order, stride, offset, byte order and alignment; sizes 0 and 1 among them."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=max_rank)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    steps = tuple(draw(st.sampled_from([1, 2, -1, -2])) for _ in shape)
    stored = tuple(max(n * abs(s), 1) for n, s in zip(shape, steps))
    order = dtype.newbyteorder(draw(st.sampled_from(["=", "S"])))
    offset = draw(st.sampled_from([0, 1, dtype.itemsize]))
    memory = np.zeros(int(np.prod(stored)) * dtype.itemsize + offset, "uint8")
    a = np.ndarray(stored, order, memory, offset)
    values = rng.normal(size=stored) * 10
    if dtype.kind == "u" or dtype.kind == "b":
        values = np.abs(values)
    a[...] = (values + (1j * values[::-1] if dtype.kind == "c" and stored else 0)).astype(dtype)
    if shape:
        a = a[tuple(slice(None, None, s) for s in steps)][tuple(slice(0, n) for n in shape)]
    a = np.asarray(a).transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        a.flags.writeable = False
    return a


@hypothesis.given(arrays())
def test_arrays_come_and_go_as_they_are(a):
    before = a.copy()
    t = ps.asarray(a)
    assert t.shape == a.shape and t.dtype == a.dtype.newbyteorder("=")
    native = a.dtype.isnative and a.flags.aligned and all(s % a.itemsize == 0 for s in a.strides)
    if native and a.size:
        assert t.data_ptr() == a.ctypes.data
    assert t.tolist() == a.tolist()
    if a.size:
        t.fill_(0) if not native or not a.flags.writeable else None
    assert np.array_equal(a, before)
    back = ps.asarray(np.asarray(ps.asarray(a)))
    assert back.tolist() == before.tolist()
    assert pickle.loads(pickle.dumps(back)).tolist() == before.tolist()


@hypothesis.given(arrays(dtypes=["float32", "float64", "int16", "uint8", "bool"]))
def test_functions_take_arrays_of_any_form(a):
    before = a.copy()
    x = ps.tensor("float64", (None,) * a.ndim, "x")
    f = ps.function([x], [x * 2 + 1, po.sum(x)])
    double, total = f(a)
    np.testing.assert_allclose(double, a.astype("float64") * 2 + 1)
    np.testing.assert_allclose(total, a.astype("float64").sum(), rtol=1e-12, atol=1e-9)
    assert double.flags.writeable and not np.shares_memory(double, a)
    assert np.array_equal(a, before)


@hypothesis.given(arrays(dtypes=["float64", "complex128"], max_rank=3))
def test_operators_take_arrays_of_any_form(a):
    before = a.copy()
    A = ps.Scalar(2.0, "...") | ps.Diagonal(np.float64(3.0), "...", weight_shape="")
    y = A(a)
    np.testing.assert_allclose(y, 6 * a)
    assert y.flags.writeable and not np.shares_memory(y, a) and np.array_equal(a, before)


@hypothesis.given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 9)),
                           max_size=25))
def test_random_programs_of_views_clones_exports_and_writes(steps):
    """Against a model of NumPy in which a lazy clone is a copy."""
    tensors, models = [ps.asarray(np.arange(12.0), copy=True)], [np.arange(12.0)]
    for op, which, value in steps:
        k = which % len(tensors)
        t, m = tensors[k], models[k]
        n = len(m)
        if op == 0:
            tensors.append(t.lazy_clone()), models.append(m.copy())
        elif op == 1:
            tensors.append(t[value % n:]), models.append(m[value % n:])
        elif op == 2:
            tensors.append(t[::-1]), models.append(m[::-1])
        elif op == 3:
            t[value % n] = value
            m[value % n] = value
        elif op == 4:
            np.asarray(t)[value % n] = -value
            m[value % n] = -value
        elif op == 5:
            t.fill_(value)
            m.fill(value)
        else:
            tensors.append(ps.asarray(np.asarray(t))), models.append(m)
        for tensor, model in zip(tensors, models):
            assert tensor.tolist() == model.tolist()


def leaf(draw, n):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        d = rng.normal(size=n) + 1j * rng.normal(size=n)
        return ps.Diagonal(d, "N"), np.diag(d)
    if kind == 1:
        W = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
        return ps.Dense(W, "MN,N->M") | ps.ShapeSpec("M", "N"), W
    if kind == 2:
        return ps.Roll("N", "N", 1), np.roll(np.eye(n), 1, axis=0)
    return ps.Identity("N"), np.eye(n)


@st.composite
def expressions(draw, n=4, depth=3):
    if depth == 0 or draw(st.booleans()):
        return leaf(draw, n)
    A, M = draw(expressions(n=n, depth=depth - 1))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return A.H, M.conj().T
    if kind == 1:
        return A.N, M.conj().T @ M
    if kind == 2:
        return (2 - 1j) * A, (2 - 1j) * M
    if kind == 3:
        return -A, -M
    B, L = draw(expressions(n=n, depth=depth - 1))
    return (A + B, M + L) if kind == 4 else (A @ B, M @ L)


@hypothesis.given(expressions())
def test_random_expressions_are_their_matrices(pair):
    A, M = pair
    x = np.arange(4) + 1j
    scale = max(1.0, np.abs(M).max())
    np.testing.assert_allclose(A(x) / scale, M @ x / scale, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(A.H(x) / scale, M.conj().T @ x / scale, rtol=1e-9, atol=1e-9)
    B = pickle.loads(pickle.dumps(A))
    assert np.array_equal(B(x), A(x))


@hypothesis.given(st.recursive(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(4, 8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8), st.sampled_from([2, 4, 5]))
def test_pickles_keep_what_is_shared(tree, protocol):
    bases = [ps.asarray(np.arange(8.0) + k, copy=True) for k in range(3)]

    def build(node):
        if isinstance(node, tuple):
            return bases[node[0]][node[1]:node[2]]
        if isinstance(node, dict):
            return {key: build(value) for key, value in node.items()}
        return [build(value) for value in node]

    def leaves(node, tree):
        if isinstance(tree, tuple):
            return [(tree, node)]
        pairs = zip(node, tree) if isinstance(tree, list) else ((node[k], tree[k]) for k in tree)
        return [found for pair in pairs for found in leaves(*pair)]

    copied = leaves(pickle.loads(pickle.dumps(build(tree), protocol)), tree)
    for (base, start, stop), t in copied:
        assert t.tolist() == list(np.arange(8.0)[start:stop] + base)
        for (other, _, _), u in copied:
            assert t.is_alias_of(u) == (base == other)
