# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of JAX: on the host, under jit, grad and vmap."""

import jax
import jax.numpy as jnp
import numpy as np
from typing import Any

from palimpsest import _core


def _type_of(x_type: Any) -> Any:
    if isinstance(x_type, _core.TensorType):
        return tuple(x_type.shape), np.dtype(x_type.dtype.name)
    if isinstance(x_type, (tuple, list)):
        dtype, shape = x_type
        return tuple(shape), np.dtype(getattr(dtype, "name", dtype))
    return tuple(x_type.shape), np.dtype(x_type.dtype)


def _checked(dtype: Any) -> Any:
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise _core.errors.DTypeError(
            f"[as_jax] got {dtype}, expected {jax.dtypes.canonicalize_dtype(dtype)}. "
            "Try jax.config.update('jax_enable_x64', True)."
        )
    return dtype


class _Direction:
    """Applies A or its transpose. The transpose is not conjugated, as JAX expects of a pullback."""

    other: Any  # the opposite direction

    def __init__(self, A: Any, shape: Any, dtype: Any, is_transposed: Any) -> None:
        self.A = A
        self.shape, self.dtype = shape, dtype
        self.is_transposed = is_transposed

        @jax.custom_vjp
        def run(x: Any) -> Any:
            return jax.pure_callback(
                self._on_host, jax.ShapeDtypeStruct(self.other.shape, self.other.dtype), x,
                vmap_method="sequential")

        run.defvjp(lambda x: (run(x), None), lambda _, ct: (self.other.run(ct),))
        self.run = run

    def _on_host(self, x: Any) -> Any:
        x = np.asarray(x)
        if not self.is_transposed:
            return self._given(self.A(x))
        return self._given(np.conj(self.A(np.conj(x))))

    def _given(self, y: Any) -> Any:
        if np.iscomplexobj(y) and self.other.dtype.kind != "c":
            y = y.real
        return np.ascontiguousarray(y, dtype=self.other.dtype)


def as_jax(A: Any, x_type: Any) -> Any:
    """An operator as a function of JAX.

    Parameters
    ----------
    x_type : array, ShapeDtypeStruct, TensorType or (dtype, shape)
        Type of the argument x.

    Returns
    -------
    callable
        It may be jitted and differentiated backwards any number of times; vmap applies it to one x
        after another. It runs on the host. Parameters are read when it runs, and are constants for
        JAX.

    Raises
    ------
    DTypeError
        A dtype of 64 bits where JAX has been told to use 32.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, palimpsest as ps
    >>> f = ps.jax.as_jax(ps.Diagonal(np.array([1, 2], "float32"), "N"), ("float32", (2,)))
    >>> f(jnp.ones(2)).tolist()
    [1.0, 2.0]
    """
    shape, dtype = _type_of(x_type)
    _checked(dtype)
    x = _core.tensor(dtype.name, shape)
    y_dtype = _checked(np.dtype(A(x).dtype.name))
    there = _Direction(A, shape, dtype, False)
    back = _Direction(A.H, tuple(A.output_shape(shape)), y_dtype, True)
    there.other, back.other = back, there

    def apply(x: Any) -> Any:
        x = jnp.asarray(x)
        if tuple(x.shape) != shape:
            raise _core.errors.ShapeError(
                f"[as_jax] got an array of {tuple(x.shape)}, expected {shape}.")
        if not np.can_cast(x.dtype, dtype, "same_kind"):
            raise _core.errors.DTypeError(f"[as_jax] got {x.dtype}, expected {dtype}.")
        return there.run(x.astype(dtype))

    return apply
