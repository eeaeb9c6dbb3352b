# SPDX-License-Identifier: Apache-2.0
"""Operators of other packages as steps of a graph; sizes and dtypes of our operators for other packages."""

import itertools
from typing import Any

import numpy as np

from palimpsest import _core
from palimpsest.user_ops import Apply, Op

_counter = itertools.count()


class _Side:
    """One direction of an operator of another package: its function and its result."""

    def __init__(self, who: Any, call: Any, shape: Any, dtype_of: Any) -> None:
        self.who = who
        self.call = call  # array of the input's extents -> array of as many elements as shape says
        self.shape = shape
        self.dtype_of = dtype_of  # dtype of the input -> dtype of the result


class _Call(Op):
    """Calls one direction; its pullback calls the other one."""

    __props__ = ("number",)

    def __init__(self, forward: Any, adjoint: Any) -> None:
        self.number = next(_counter)  # unique, so no two ops are equal
        self.forward = forward
        self.adjoint = adjoint

    def make_node(self, x: Any) -> Any:
        dtype = self.forward.dtype_of(np.dtype(x.dtype.name))
        return Apply(self, [x], [_core.TensorType(dtype.name, self.forward.shape)])

    def infer_shapes(self, node: Any, shapes: Any) -> Any:
        return [self.forward.shape]

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        result = np.asarray(self.forward.call(inputs[0]))
        if result.size != outputs[0].size:
            raise ValueError(
                f"[{self.forward.who}] got a result of shape {result.shape}, expected "
                f"{self.forward.shape}."
            )
        if result.dtype.kind == "c" and outputs[0].dtype.kind != "c":
            raise TypeError(
                f"[{self.forward.who}] got a result of {result.dtype}, expected "
                f"{outputs[0].dtype}, as its dtype says."
            )
        outputs[0][...] = result.reshape(self.forward.shape)

    def pullback(self, node: Any, cotangents: Any) -> Any:
        back = _Call(self.adjoint, self.forward)(cotangents[0])
        is_real = np.dtype(node.inputs[0].dtype.name).kind != "c"
        return [_core.ops.real(back) if is_real and back.dtype.name.startswith("complex") else back]


def by_parts(call: Any) -> Any:
    """Extends a function of real arrays to complex ones: it is applied to real and imaginary part."""

    def called(x: Any) -> Any:
        if not np.iscomplexobj(x):
            return call(x)
        return call(np.ascontiguousarray(x.real)) + 1j * call(np.ascontiguousarray(x.imag))

    return called


def opaque(who: Any, forward: Any, adjoint: Any, ishape: Any, oshape: Any, extents: Any, dtype_of: Any,
           check: Any) -> Any:
    """An operator of two functions of arrays.

    Parameters
    ----------
    who : str
        Begins messages.
    extents : pair of tuples
        Those of x and of y.
    dtype_of : function
        Of the dtype of an input: that of the result.
    check : dtype or None
        Of the vectors of a dot test.
    """
    ishape, oshape = _core.Dims(ishape), _core.Dims(oshape)
    sizes: dict[str, int] = {}
    for dims, shape, side in ((ishape, extents[0], "input"), (oshape, extents[1], "output")):
        if len(dims) != len(shape):
            raise _core.errors.ShapeError(
                f"[{who}] the {side} has other axes: got {dims}, expected {len(shape)} names for "
                f"{tuple(shape)}."
            )
        for dim, size in zip(dims, shape):
            if sizes.setdefault(str(dim), int(size)) != size:
                raise _core.errors.ShapeError(
                    f"[{who}] size of dim '{dim}': got {size} and {sizes[str(dim)]}, expected one."
                )
    there = _Side(who, forward, tuple(extents[1]), dtype_of)
    back = _Side(who + ", adjoint", adjoint, tuple(extents[0]), dtype_of)
    one, other = _Call(there, back), _Call(back, there)
    A = _core.SimpleLinop(one, other, ishape=ishape, oshape=oshape, name=who).with_sizes(sizes)
    if check is not None:
        test = _core.dot_test(A, dtype=np.dtype(check).name)
        if not test:
            raise _core.errors.ValueError(
                f"[{who}] the adjoint is another operator's: got <A x, y> = {test.lhs}, "
                f"expected <x, A^H y> = {test.rhs}. Try to mend it, or check=False."
            )
    return A


def named_extents(who: Any, ishape: Any, oshape: Any, sizes: Any) -> Any:
    """The extents of x and of y by the sizes of all names."""
    sizes = {str(dim): int(size) for dim, size in sizes.items()}
    shapes = []
    for dims, side in ((_core.Dims(ishape), "input"), (_core.Dims(oshape), "output")):
        missing = [str(d) for d in dims if str(d) not in sizes]
        if missing:
            raise _core.errors.ValueError(
                f"[{who}] sizes of the {side}: got none for {', '.join(missing)}.")
        shapes.append(tuple(sizes[str(d)] for d in dims))
    return shapes


def of_functions(fn: Any, adj_fn: Any, ishape: Any, oshape: Any, sizes: Any, dtype: Any, check: Any) -> Any:
    """opaque() for functions of a user; see palimpsest.from_functions."""
    who = "from_functions"
    for name, function in (("fn", fn), ("adj_fn", adj_fn)):
        if not callable(function):
            raise _core.errors.TypeError(
                f"[{who}] {name}: got {type(function).__name__}, expected a function of an array.")
    given = () if dtype is None else (np.dtype(dtype),)
    return opaque(who, fn, adj_fn, ishape, oshape, named_extents(who, ishape, oshape, sizes),
                  lambda x: np.result_type(x, *given), np.dtype(dtype or "float64") if check else None)


def typed(who: Any, L: Any, ishape: Any, oshape: Any, extents: Any, check: Any) -> Any:
    """opaque() for an operator that has matvec, rmatvec and a dtype."""
    dtype = np.dtype(L.dtype if L.dtype is not None else "float64")
    if dtype.kind not in "fc":
        dtype = np.dtype("float64")

    def forward(x: Any) -> Any:
        return L.matvec(x.reshape(-1))

    def adjoint(y: Any) -> Any:
        return L.rmatvec(y.reshape(-1))

    if dtype.kind == "f":
        forward, adjoint = by_parts(forward), by_parts(adjoint)
    return opaque(who, forward, adjoint, ishape, oshape, extents,
                  lambda given: np.result_type(dtype, given), dtype if check else None)


def extents(who: Any, A: Any, sizes: Any) -> Any:
    """The extents of x and of y. Without extents in `sizes` the dimensions '...' are none."""
    sizes = dict(sizes or {})
    given = sizes.pop("...", ())
    others = tuple(int(n) for n in (given if isinstance(given, (tuple, list)) else (given,)))
    sizes = {str(dim): int(size) for dim, size in sizes.items()}
    known = A.with_sizes(sizes)
    both = {**known.sizes, **sizes}
    names = [str(d) for d in known.ishape]
    missing = [name for name in names if name != "..." and name not in both]
    if missing:
        advice = ", ".join(f"'{name}': 64" for name in missing)
        raise _core.errors.ValueError(
            f"[{who}] the size of {', '.join(missing)} of the input is unknown. Try sizes={{{advice}}}.")
    ishape: list[int] = []
    for name in names:
        ishape += others if name == "..." else (both[name],)
    return tuple(ishape), tuple(known.output_shape(ishape))


def dtype_of(A: Any, ishape: Any) -> Any:
    """The dtype of an operator as SciPy means it: that of the results for real inputs, in its precision."""
    real = np.dtype("float64" if A._precision is None else A._precision.name)
    try:
        return np.dtype(A(_core.tensor(real.name, ishape)).dtype.name)
    except _core.errors.DTypeError:  # it takes complex inputs only
        return np.result_type(real, "complex64")


def applied(A: Any, x: Any, shape: Any, dtype: Any) -> Any:
    """A x as a vector: computed in the precision of A, given in the dtype to which x and A promote."""
    return _promoted(A, np.asarray(x), shape, dtype).reshape(-1)


def applied_to_columns(A: Any, X: Any, shape: Any, dtype: Any) -> Any:
    """applied() for all columns of a matrix in one application; None where A does not take them so."""
    dims = [str(d) for d in A.ishape]
    if dims[:1] != ["..."] or len(dims) != len(shape) + 1:
        return None
    n = X.shape[1]
    return _promoted(A, np.ascontiguousarray(X.T), (n, *shape), dtype).reshape(n, -1).T


def _promoted(A: Any, x: Any, shape: Any, dtype: Any) -> Any:
    promoted = np.result_type(dtype, x)
    within = promoted
    if A._precision is not None:
        within = np.result_type(A._precision.name, *(["complex64"] if promoted.kind == "c" else []))
    y = A(x.astype(within, copy=False).reshape(shape))
    is_complex = y.dtype.kind == "c" and promoted.kind != "c"
    return y.astype(np.result_type(promoted, "complex64") if is_complex else promoted, copy=False)
