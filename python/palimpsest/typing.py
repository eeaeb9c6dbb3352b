# SPDX-License-Identifier: Apache-2.0
"""Types for annotations of arguments and results."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Protocol,
    Sequence,
    TypeAlias,
    TypeVar,
    Union,
    runtime_checkable,
)

if TYPE_CHECKING:
    from palimpsest._core import Dims, DType, NamedDimension, SolveInfo, Variable

__all__ = ["Array", "ArrayLike", "ArrayT", "DimsLike", "DTypeLike", "Progress", "ShapeLike", "VariableLike"]


@runtime_checkable
class _HasArray(Protocol):
    """Arrays of NumPy, and objects that NumPy makes arrays of."""

    def __array__(self) -> Any: ...


@runtime_checkable
class _HasDLPack(Protocol):
    """Arrays of torch, JAX, CuPy and others."""

    def __dlpack__(self) -> Any: ...


#: An array of the kind of the arguments: of NumPy, torch, JAX, CuPy or xarray, or a Tensor.
Array: TypeAlias = Any
#: An array of any package, a number, or lists of numbers.
ArrayLike: TypeAlias = "Union[_HasArray, _HasDLPack, complex, Sequence[Any]]"
#: An array, where the result is of the same kind.
ArrayT = TypeVar("ArrayT", bound="_HasArray | _HasDLPack")
#: A Variable, or a value that becomes a constant.
VariableLike: TypeAlias = "Union[Variable, ArrayLike]"
#: A dtype of this package, of NumPy or torch, its name, or a type of Python.
DTypeLike: TypeAlias = "Union[DType, str, type, Any]"
#: Extents; each may be a Variable.
ShapeLike: TypeAlias = "Union[int, Variable, Sequence[Union[int, Variable]]]"
#: Names of dimensions: a text such as "C Nx Ny", or a list of names.
DimsLike: TypeAlias = "Union[str, Dims, NamedDimension, Sequence[Union[str, NamedDimension]]]"
#: True: shows the progress of a solve. A function: it is called after each iteration.
Progress: TypeAlias = "Union[bool, Callable[[SolveInfo], object]]"
