# SPDX-License-Identifier: Apache-2.0
"""Factories that have other ways to make the same operator as attributes."""

import functools

from palimpsest import _core


class _Factory:
    """A function with other functions as attributes."""

    def __init__(self, make, **others):
        functools.update_wrapper(self, make)
        self.__wrapped__ = make
        for name, function in others.items():
            setattr(self, name, function)

    def __call__(self, *arguments, **options):
        return self.__wrapped__(*arguments, **options)

    def __repr__(self):
        return f"<operator {self.__name__}>"


def from_einstr(weight, einstr, broadcast_dims=()):
    """Dense of an einsum such as 'MN,N->M'."""
    return _core.Dense(weight, einstr, broadcast=broadcast_dims or ())


def from_weight(weight, weight_shape, ioshape, shape_kwargs=None):
    """Diagonal whose weight has only some of the dimensions."""
    options = dict(shape_kwargs or {})
    broadcast = options.pop("broadcast_dims", None) or ()
    if options:
        raise TypeError(f"[Diagonal] got {', '.join(options)}, expected broadcast_dims.")
    return _core.Diagonal(weight, ioshape, weight_shape=weight_shape, broadcast=broadcast)


def _names_of(weight):
    """The dimensions of a DataArray; None for another weight."""
    if not type(weight).__module__.startswith("xarray."):
        return None
    from palimpsest.interop import xarray

    return xarray.names_of(weight)


@functools.wraps(_core.Diagonal)
def _diagonal(w, dims=None, **options):
    names = _names_of(w)
    if names is not None and options.get("weight_shape") is None:
        dims = _core.Dims(names if dims is None else dims)
        if set(names) <= {str(d) for d in dims}:
            names = [str(d) for d in dims if str(d) in names]
        options["weight_shape"] = names
        w = w.transpose(*names).data
    return _core.Diagonal(w, "..." if dims is None else dims, **options)


@functools.wraps(_core.Dense)
def _dense(weight, einsum_or_weightshape=None, ishape=None, oshape=None, **options):
    names = _names_of(weight)
    if names is not None and einsum_or_weightshape is None:
        einsum_or_weightshape, weight = names, weight.data
    elif names is not None:  # the names say in which order its axes are meant
        first = str(einsum_or_weightshape).split(",")[0] if ishape is None else einsum_or_weightshape
        wanted = [str(d) for d in _core.Dims(first)]
        weight = (weight.transpose(*wanted) if set(wanted) == set(names) else weight).data
    return _core.Dense(weight, einsum_or_weightshape, ishape, oshape, **options)


Dense = _Factory(_dense, from_einstr=from_einstr)
Diagonal = _Factory(_diagonal, from_weight=from_weight)
Sampling = _Factory(
    _core.Sampling,
    from_mask=_core.SamplingFromMask,
    from_stacked_idx=_core.SamplingFromStacked,
)
