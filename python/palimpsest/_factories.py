# SPDX-License-Identifier: Apache-2.0
"""Factories with alternative constructors of the same operator as attributes."""

from __future__ import annotations

import functools

from palimpsest import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generic, ParamSpec

    from palimpsest._core import NamedLinop
    from palimpsest.typing import ArrayLike, DimsLike

    P = ParamSpec("P")

    class _Factory(Generic[P]):
        __name__: str

        def __init__(self, make: Callable[..., NamedLinop], described: Callable[P, NamedLinop] | None = None,
                     **others: Callable[..., NamedLinop]) -> None: ...
        def __call__(self, *arguments: P.args, **options: P.kwargs) -> NamedLinop: ...
        def __getattr__(self, name: str) -> Callable[..., NamedLinop]: ...

else:

    def _Factory(make: Any, described: Any = None, **others: Any) -> Any:
        """A function with other functions as attributes.

        Signature and docstring are those of the function of C++, where one is given.
        """

        @functools.wraps(described or make)
        def factory(*arguments: Any, **options: Any) -> Any:
            return make(*arguments, **options)

        vars(factory).update(others)
        return factory


_shown: "dict[str, Callable[..., NamedLinop]]" = {name: getattr(_core, name) for name in
                          ("Dense", "Diagonal", "Sampling", "SamplingFromMask", "SamplingFromStacked")}
_core._show(_shown, "palimpsest", "")
_core_dense, _core_diagonal, _core_sampling, _from_mask, _from_stacked = _shown.values()


def from_einstr(weight: ArrayLike, einstr: str, broadcast_dims: DimsLike = ()) -> NamedLinop:
    """Dense of an einsum such as 'MN,N->M'."""
    return _core_dense(weight, einstr, broadcast=broadcast_dims or ())


def from_weight(weight: ArrayLike, weight_shape: DimsLike, ioshape: DimsLike,
                shape_kwargs: dict[str, Any] | None = None) -> NamedLinop:
    """Diagonal whose weight has only some of the dimensions."""
    options = dict(shape_kwargs or {})
    broadcast = options.pop("broadcast_dims", None) or ()
    made = _core_diagonal(weight, ioshape, weight_shape=weight_shape, broadcast=broadcast)
    return made.with_sizes(options) if options else made  # the others are sizes of dimensions


def _names_of(weight: Any) -> list[str] | None:
    """The dimensions of a DataArray; None for another weight."""
    if not type(weight).__module__.startswith("xarray."):
        return None
    from palimpsest.interop import xarray

    names: list[str] = xarray.names_of(weight)
    return names


def _diagonal(w: Any, dims: DimsLike | None = None, **options: Any) -> NamedLinop:
    names = _names_of(w)
    if names is not None and options.get("weight_shape") is None:
        dims = _core.Dims(names if dims is None else dims)
        if set(names) <= {str(d) for d in dims}:
            names = [str(d) for d in dims if str(d) in names]
        options["weight_shape"] = names
        w = w.transpose(*names).data
    return _core_diagonal(w, "..." if dims is None else dims, **options)


def _dense(weight: Any, einsum_or_weightshape: Any = None, ishape: DimsLike | None = None,
           oshape: DimsLike | None = None, **options: Any) -> NamedLinop:
    names = _names_of(weight)
    if names is not None and einsum_or_weightshape is None:
        einsum_or_weightshape, weight = names, weight.data
    elif names is not None:  # the names give the order of its axes
        first = str(einsum_or_weightshape).split(",")[0] if ishape is None else einsum_or_weightshape
        wanted = [str(d) for d in _core.Dims(first)]
        weight = (weight.transpose(*wanted) if set(wanted) == set(names) else weight).data
    return _core_dense(weight, einsum_or_weightshape, ishape, oshape, **options)


Dense = _Factory(_dense, _core_dense, from_einstr=from_einstr)
Diagonal = _Factory(_diagonal, _core_diagonal, from_weight=from_weight)
Sampling = _Factory(
    _core_sampling,
    _core_sampling,
    from_mask=_from_mask,
    from_stacked_idx=_from_stacked,
)
