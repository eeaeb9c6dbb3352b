# SPDX-License-Identifier: Apache-2.0
"""Matrix-free linear operators on named dimensions, on a byte budget."""

import builtins as _builtins
import importlib as _importlib

from palimpsest import _core
from palimpsest import interop as _interop
from palimpsest import notebook as _notebook
from palimpsest._core import *  # noqa: F403
from palimpsest._core import NamedLinop, Plan, SolvePlan, Tensor, __version__
from palimpsest._factories import Dense, Diagonal, Sampling  # type: ignore[assignment]
from palimpsest._user import linop
from palimpsest.errors import (
    AliasError,
    BudgetError,
    CycleError,
    DebugModeError,
    DeviceError,
    DisconnectedError,
    DTypeError,
    Error,
    FormatError,
    InconsistencyError,
    InternalError,
    InvalidValueError,
    IoError,
    MissingInputError,
    NanGuardError,
    NotLinearError,
    NotSupported,
    OpError,
    OutOfMemory,
    ReplaceError,
    ShapeError,
    SplitError,
    StateError,
    UnusedInputError,
)
from palimpsest.interop import from_pylops, from_scipy, from_sigpy
from palimpsest.user_ops import Apply, Op, as_op

# The modules of these names, in place of the parts of _core that they show.
from palimpsest import errors, ops  # isort: skip

_core._show(globals(), "palimpsest", "")

NamedLinop.as_scipy = _interop.as_scipy  # type: ignore[attr-defined]
NamedLinop.as_pylops = _interop.as_pylops  # type: ignore[attr-defined]
NamedLinop.as_sigpy = _interop.as_sigpy  # type: ignore[attr-defined]
NamedLinop._repr_html_ = _notebook.operator_html  # type: ignore[attr-defined, method-assign]
Plan._repr_html_ = _notebook.plan_html  # type: ignore[attr-defined, method-assign]
SolvePlan._repr_html_ = _notebook.solve_plan_html  # type: ignore[attr-defined, method-assign]
Tensor._repr_html_ = _notebook.tensor_html  # type: ignore[attr-defined, method-assign]


def __getattr__(name: str) -> object:
    """palimpsest.torch and palimpsest.jax, which import those packages."""
    if name in ("torch", "jax"):
        return _importlib.import_module("palimpsest.interop." + name)
    raise AttributeError(f"module 'palimpsest' has no attribute '{name}'")


__all__ = sorted(
    _name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)
)
