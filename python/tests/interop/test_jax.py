# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of JAX."""

import numpy as np
import pytest

import palimpsest as ps

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.jax

RNG = np.random.default_rng(8)
W = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def test_arrays_of_jax_come_and_go():
    A = ps.Dense(W, "MN,N->M")
    x = jnp.asarray(RNG.normal(size=4) + 0j)
    y = A(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(y, W @ np.asarray(x))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_those_of_the_matrix(dtype):
    A = ps.Dense(W, "MN,N->M")
    x = jnp.asarray(RNG.normal(size=4)).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * jnp.asarray(RNG.normal(size=4))
    f = ps.jax.as_jax(A, x)
    np.testing.assert_allclose(f(x), W @ np.asarray(x))
    np.testing.assert_allclose(jax.jit(f)(x), W @ np.asarray(x))

    def cost(apply):
        return lambda x: jnp.sum(jnp.abs(apply(x)) ** 2 * jnp.arange(1.0, 4.0))

    matrix = jnp.asarray(W)
    expected = jax.grad(cost(lambda x: matrix @ x))(x)
    np.testing.assert_allclose(jax.grad(cost(f))(x), expected)
    np.testing.assert_allclose(jax.jit(jax.grad(cost(f)))(x), expected)
    twice = jax.grad(lambda x: jnp.sum(jnp.abs(jax.grad(cost(f))(x)) ** 2))(x)
    theirs = jax.grad(lambda x: jnp.sum(jnp.abs(jax.grad(cost(lambda x: matrix @ x))(x)) ** 2))(x)
    np.testing.assert_allclose(twice, theirs)


def test_vmap_goes_one_by_one():
    A = ps.Dense(W.real, "MN,N->M")
    f = ps.jax.as_jax(A, ("float64", (4,)))
    xs = RNG.normal(size=(5, 4))
    np.testing.assert_allclose(jax.vmap(f)(xs), xs @ W.real.T)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: jnp.sum(f(x) ** 2)))(jnp.asarray(xs)),
                               2 * xs @ W.real.T @ W.real)


def test_types_and_mistakes():
    A = ps.Dense(W, "MN,N->M")
    f = ps.jax.as_jax(A, jax.ShapeDtypeStruct((4,), "complex128"))
    with pytest.raises(ps.ShapeError, match="expected .4,."):
        f(jnp.ones(5))
    with pytest.raises(ps.ShapeError):
        ps.jax.as_jax(A, ("complex128", (5,)))
    real = ps.jax.as_jax(A, ("float64", (4,)))
    with pytest.raises(ps.DTypeError, match="complex128.*float64"):
        real(jnp.ones(4, "complex128"))
    with jax.enable_x64(False), pytest.raises(ps.DTypeError, match="jax_enable_x64"):
        ps.jax.as_jax(A, ("complex128", (4,)))
