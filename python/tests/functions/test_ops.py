# SPDX-License-Identifier: Apache-2.0
"""Every op compared with NumPy, on arrays of any layout."""

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as pt

A = np.linspace(-2.0, 2.5, 12).reshape(3, 4)
POSITIVE = np.abs(A) + 0.1
UNIT = np.linspace(-0.9, 0.9, 12).reshape(3, 4)
Z = A + 1j * A[::-1]
INTS = np.arange(-6, 6).reshape(3, 4)

UNARY = [(name, A) for name in
         "neg abs sign square exp expm1 sin cos tan sinh cosh tanh arctan arcsinh sinc isnan isinf "
         "isfinite logical_not".split()]
UNARY += [(name, POSITIVE) for name in "sqrt log log1p log2 log10 reciprocal".split()]
UNARY += [(name, UNIT) for name in "arcsin arccos arctanh".split()]
UNARY += [(name, Z) for name in "conj angle real imag exp sqrt abs".split()]
UNARY += [("arccosh", POSITIVE + 1), ("round", A)]
OF_NUMPY = {"neg": np.negative, "round": np.round, "angle": np.angle, "real": np.real,
            "imag": np.imag, "abs": np.abs, "sinc": np.sinc}


@pytest.mark.parametrize("name, x", UNARY)
def test_unary(name, x):
    v = pt.tensor(x.dtype, (None, None), "x")
    f = ps.function([v], getattr(pt, name)(v))
    reference = OF_NUMPY.get(name) or getattr(np, name)
    np.testing.assert_allclose(f(x), reference(x), rtol=1e-12, atol=1e-14)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
          "floor_div": np.floor_divide, "mod": np.mod, "minimum": np.minimum,
          "maximum": np.maximum, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
          "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "arctan2": np.arctan2,
          "hypot": np.hypot, "logical_and": np.logical_and, "logical_or": np.logical_or,
          "logical_xor": np.logical_xor}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = pt.dmatrices("x", "y")
    f = ps.function([x, y], getattr(pt, name)(x, y))
    np.testing.assert_allclose(f(A, POSITIVE), BINARY[name](A, POSITIVE), rtol=1e-13)


@pytest.mark.parametrize("f", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
    lambda x, y: x // y, lambda x, y: x % y, lambda x, y: abs(x) ** y, lambda x, y: x @ y.T,
    lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: -x + (+y), lambda x, y: 2.0 - x,
    lambda x, y: 1 / y, lambda x, y: x * A[0], lambda x, y: A + x, lambda x, y: A[0] * x,
    lambda x, y: A @ y.T, lambda x, y: x.T, lambda x, y: x[1], lambda x, y: x[:, ::-1],
    lambda x, y: x[..., None], lambda x, y: x[[0, 2]], lambda x, y: x[:, np.array([1, 1])],
    lambda x, y: x[A > 0], lambda x, y: x[-1, 1:3],
], ids=range(25))
def test_operators_mean_what_they_mean_for_arrays(f):
    x, y = pt.dmatrices("x", "y")
    compiled = ps.function([x, y], f(x, y), on_unused_input="ignore")
    np.testing.assert_allclose(compiled(A, POSITIVE), f(A, POSITIVE), rtol=1e-12)


@pytest.mark.parametrize("name", "sum prod max min mean any all var std argmax argmin".split())
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_reductions(name, axis):
    if name.startswith("arg") and axis == (0, 1):
        axis = None
    x = pt.dmatrix("x")
    f = ps.function([x], getattr(pt, name)(x, axis=axis))
    np.testing.assert_allclose(f(A), getattr(np, name)(A, axis=axis), rtol=1e-12)
    g = ps.function([x], pt.sum(x, axis=0, keepdims=True))
    assert g(A).shape == (1, 4)


@pytest.mark.parametrize("f", [
    lambda np_, x: np_.reshape(x, (4, 3)), lambda np_, x: np_.ravel(x),
    lambda np_, x: np_.transpose(x), lambda np_, x: np_.transpose(x, (1, 0)),
    lambda np_, x: np_.swapaxes(x, 0, 1), lambda np_, x: np_.moveaxis(x, 0, 1),
    lambda np_, x: np_.flip(x, (1,)), lambda np_, x: np_.roll(x, 1, 0),
    lambda np_, x: np_.tile(x, (2, 1)), lambda np_, x: np_.repeat(x, 2, 1),
    lambda np_, x: np_.concatenate([x, x], 1), lambda np_, x: np_.stack([x, x], 1),
    lambda np_, x: np_.pad(x, ((1, 0), (0, 2))), lambda np_, x: np_.pad(x, 1, mode="reflect"),
    lambda np_, x: np_.broadcast_to(x, (2, 3, 4)), lambda np_, x: np_.cumsum(x, 1),
    lambda np_, x: np_.where(x > 0, x, 0.0), lambda np_, x: np_.clip(x, -1, 1),
    lambda np_, x: np_.einsum("ij,kj->ik", x, x), lambda np_, x: np_.tensordot(x, x, ((0,), (0,))),
    lambda np_, x: np_.outer(x[0], x[1]), lambda np_, x: np_.vdot(x[0], x[1]),
    lambda np_, x: np_.dot(x, x.T), lambda np_, x: np_.trace(x), lambda np_, x: np_.full_like(x, 3),
    lambda np_, x: np_.zeros_like(x), lambda np_, x: np_.squeeze(x[:1], 0),
    lambda np_, x: np_.expand_dims(x, 1),
], ids=range(28))
def test_shapes_and_products(f):
    x = pt.dmatrix("x")
    compiled = ps.function([x], f(pt, x), on_unused_input="ignore")
    np.testing.assert_allclose(compiled(A), f(np, A), rtol=1e-12)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_ffts(norm):
    x = pt.zmatrix("x")
    f = ps.function([x], [pt.fft(x, (0, 1), norm=norm), pt.ifft(x, (1,), norm=norm),
                          pt.fftshift(x), pt.fft(x, (0,), norm=norm, centered=True)])
    y = f(Z)
    np.testing.assert_allclose(y[0], np.fft.fft2(Z, norm=norm), atol=1e-12)
    np.testing.assert_allclose(y[1], np.fft.ifft(Z, norm=norm), atol=1e-12)
    np.testing.assert_allclose(y[2], np.fft.fftshift(Z))
    centered = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(Z, 0), axis=0, norm=norm), 0)
    np.testing.assert_allclose(y[3], centered, atol=1e-12)
    with pytest.raises(ValueError, match="'backward', 'ortho', 'forward'"):
        pt.fft(x, norm="orhto")


def test_integers_stay_integers_and_numbers_are_weak():
    x = pt.tensor("int32", (None,), "x")
    assert (x + 1).dtype == "int32" and (x * 2.0).dtype == "float64" and (x / 2).dtype == "float64"
    y = pt.fvector("y")
    assert (y * 2.0).dtype == "float32" and (y * 1j).dtype == "complex64"
    assert (y * np.float64(2)).dtype == "float64"
    f = ps.function([x], x // 4)
    assert f(np.arange(-6, 6, dtype="int32")).tolist() == (np.arange(-6, 6) // 4).tolist()


def test_set_and_inc():
    x = pt.dvector("x")
    f = ps.function([x], [x[1:3].set(7), x[[0, 0]].inc(1.0), pt.set_subtensor(x[0], 5)])
    a, b, c = f(np.zeros(4))
    assert a.tolist() == [0, 7, 7, 0] and b.tolist() == [2, 0, 0, 0] and c.tolist() == [5, 0, 0, 0]


def test_loops_and_conditions():
    x = pt.dvector("x")
    r = pt.loop(lambda row, total: (total + row, total * 2.0), sequences=[x], states=[pt.zeros(())])
    f = ps.function([x], [r.last(0), r.trace(0), r.mapped(0)])
    last, trace, mapped = f([1.0, 2.0, 3.0])
    assert last == 6 and trace.tolist() == [1, 3, 6] and mapped.tolist() == [0, 2, 6]
    fib = pt.loop(lambda a, b: a + b, states=[(pt.constant([1.0, 1.0]), (-2, -1))], n_steps=5)
    assert ps.function([], fib.trace(0))().tolist() == [2, 3, 5, 8, 13]
    k = pt.loop(lambda s: s * 2.0, states=[x[0]], n_steps=100, until=lambda s, new: new > 50.0)
    assert ps.function([x], k.last(0))([1.0]) == 64
    c = pt.lscalar("c")
    g = ps.function([c, x], pt.ifelse(c > 0, x, -x))
    assert g(1, [1.0]).tolist() == [1] and g(-1, [1.0]).tolist() == [-1]


def test_random_numbers_depend_on_their_key_alone():
    key = pt.random_key(7)
    f = ps.function([], pt.random_normal(key, (1000,)))
    assert np.array_equal(f(), f()) and abs(f().mean()) < 0.2
    low, high = pt.random_integers(key, (100,), 3, 6), pt.random_uniform(key, (5,), low=1, high=2)
    values, uniform = ps.function([], [low, high])()
    assert set(values) == {3, 4, 5} and (uniform >= 1).all() and (uniform < 2).all()


def test_gradients():
    x = pt.dvector("x")
    y = pt.sum(pt.exp(x) * x)
    f = ps.function([x], ps.grad(y, x))
    a = np.array([0.5, -1.0])
    np.testing.assert_allclose(f(a), np.exp(a) * (a + 1))
    z = pt.zvector("z")
    g = ps.function([z], ps.grad(pt.sum(pt.abs2(z)), z))
    np.testing.assert_allclose(g(Z[0]), 2 * Z[0])
    assert ps.is_linear(x * 2.0, x) == "complex" and ps.is_linear(x * x, x) == "no"
    with pytest.raises(ps.DisconnectedError):
        ps.grad(y, z)


@pytest.mark.parametrize("extents, strides", [(-1, 3), ([2, -3], [1, 1]), ([2], [1, 1])])
def test_strided_views_of_no_array_are_refused(extents, strides):
    with pytest.raises(ps.ShapeError, match="as_strided"):
        pt.as_strided(np.array(1.0), extents, strides)


def test_row_is_an_input_or_a_row():
    x = pt.row("x")
    assert (x.name, x.type.shape, x.dtype) == ("x", (1, None), "float64")
    for y in (pt.row("y", "float32"), pt.row("y", dtype="float32"), pt.row(name="y", dtype="float32")):
        assert (y.name, y.type.shape, y.dtype) == ("y", (1, None), "float32")
    assert pt.row().type == x.type
    m = pt.dmatrix("m")
    assert ps.function([m], pt.row(m, -1))(A).tolist() == A[-1].tolist()
    with pytest.raises(TypeError, match="position"):
        pt.row(m)


@pytest.mark.parametrize("n", [1, 61])
def test_sign_of_a_complex_number_is_its_direction(n):
    inf = np.inf
    z = np.array([3 + 4j, 0, complex(inf, 1), complex(-1, -inf), complex(1.5e308, -1.5e308), complex(inf, inf)])
    v = pt.zvector("v")
    expected = np.where(z == 0, 0, np.exp(1j * np.angle(z)))
    for x, y in ((z, expected), (np.tile(z, n), np.tile(expected, n))):
        np.testing.assert_allclose(ps.function([v], pt.sign(v))(x), y, rtol=1e-14, atol=1e-15)
    assert np.isnan(ps.function([v], pt.sign(v))([complex(np.nan, 1)] * n)).all()


def test_products_of_integers_are_int64_as_their_sums_are():
    for dtype in ("bool", "int8", "uint8", "int32"):
        x = pt.tensor(dtype, (None, None))
        for product in (x @ x, pt.dot(x, x), pt.tensordot(x, x, 1), pt.outer(x[0], x[0]), pt.vdot(x[0], x[0])):
            assert product.dtype == "int64"
    big = np.full((1, 2), 127, "int8")
    x, y = pt.tensor("int8", (None, None)), pt.tensor("int8", (None, None))
    assert ps.function([x, y], x @ y)(big, big.T).tolist() == [[2 * 127**2]]
