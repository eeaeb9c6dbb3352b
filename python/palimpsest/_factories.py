# SPDX-License-Identifier: Apache-2.0
"""Factories that have other ways to make the same operator as attributes."""

import functools

from palimpsest import _core


class _Factory:
    """A function with other functions as attributes."""

    def __init__(self, make, **others):
        functools.update_wrapper(self, make)
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


Dense = _Factory(_core.Dense, from_einstr=from_einstr)
Diagonal = _Factory(_core.Diagonal, from_weight=from_weight)
Sampling = _Factory(
    _core.Sampling,
    from_mask=_core.SamplingFromMask,
    from_stacked_idx=_core.SamplingFromStacked,
)
