# SPDX-License-Identifier: Apache-2.0
"""Arrays of xarray, whose dimensions are matched with those of operators.

A DataArray comes in the order of its own dimensions and is shown in that of the operator by a view.
"""

import xarray
from typing import Any

from palimpsest import _core


def _name(dim: Any) -> Any:
    """A dimension of an array as one of an operator; NameError with the nearest legal name."""
    text = str(dim)
    try:
        names: Any = _core.Dims([text])
    except _core.errors.ValueError:
        names = ()
    if len(names) == 1 and str(names[0]) == text and text[:1].isalpha():
        return text
    letters = "".join(c if c.isalnum() and c.isascii() or c == "_" else "_" for c in text).lower()
    nearest = letters.lstrip("_0123456789") or "x"
    raise _core.errors.NameError(
        f"[xarray] got the dimension '{text}', expected a letter and then lower-case letters, "
        f"digits and _. Try .rename({{{dim!r}: '{nearest}'}})."
    )


def names_of(array: Any) -> Any:
    """The dimensions of a DataArray as a list of names."""
    return [_name(dim) for dim in array.dims]


def ordered(array: Any, dims: Any) -> Any:
    """The data in the order of dims, a view, and the names; an ellipsis takes all other dimensions.

    Raises
    ------
    ShapeError
        A dimension that one of the two lacks.
    """
    have = names_of(array)
    wanted = [str(d) for d in dims]
    concrete = [d for d in wanted if d != "..."]
    others = [d for d in have if d not in concrete]
    missing = [d for d in concrete if d not in have and not d.startswith("(")]
    anonymous = [d for d in concrete if d.startswith("(")]
    surplus = others if "..." not in wanted and not anonymous else []
    if missing or surplus:
        what = [f"no dimension {', '.join(missing)}"] if missing else []
        what += [f"the additional dimension {', '.join(surplus)}"] if surplus else []
        raise _core.errors.ShapeError(
            f"[xarray] got an array of ({', '.join(have)}) with {' and '.join(what)}, "
            f"expected ({', '.join(wanted)})."
        )
    if anonymous:  # a wildcard takes any name
        names = have
    else:
        names = []
        for d in wanted:
            names += others if d == "..." else [d]
    return array.transpose(*names).data, names


def _result_names(A: Any, given: Any, rank: Any) -> Any:
    """The names of the axes of a result: those of oshape, with the names that its ellipsis stands for."""
    wanted = [str(d) for d in A.oshape]
    concrete = {str(d) for d in A.ishape}
    names = []
    for d in wanted:
        names += [n for n in given if n not in concrete] if d == "..." else [d]
    if len(names) != rank or any(n.startswith("(") for n in names):
        return list(given) if len(given) == rank else [f"dim_{k}" for k in range(rank)]
    return names


def labelled(values: Any, names: Any, like: Any) -> Any:
    """A DataArray of an array: coordinates of `like` along the dimensions that both have."""
    sizes = dict(zip(names, values.shape))
    coords = {
        name: c for name, c in like.coords.items()
        if all(sizes.get(str(d)) == like.sizes[d] for d in c.dims)
    }
    return xarray.DataArray(values, dims=names, coords=coords, name=like.name, attrs=like.attrs)


def apply(A: Any, x: Any) -> Any:
    """A x for a DataArray x."""
    data, given = ordered(x, A.ishape)
    y = A(data)
    return labelled(y, _result_names(A, given, y.ndim), x)


def solution(A: Any, values: Any, b: Any) -> Any:
    """The result of a solver for a DataArray b, as one with the dimensions of A.ishape."""
    _, given = ordered(b, A.oshape)
    return labelled(values, _result_names(A.H, given, values.ndim), b)
