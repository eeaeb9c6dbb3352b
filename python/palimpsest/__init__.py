# SPDX-License-Identifier: Apache-2.0
"""Matrix-free linear operators on named dimensions, on a byte budget."""

import builtins as _builtins
import importlib as _importlib

from palimpsest import _core
from palimpsest import interop as _interop
from palimpsest import notebook as _notebook
from palimpsest._core import *  # noqa: F403
from palimpsest._core import Function, NamedLinop, Plan, SolvePlan, Tensor
from palimpsest._core import __version__ as __version__
from palimpsest._factories import Dense as Dense, Diagonal as Diagonal, Sampling as Sampling
from palimpsest._neighbours import warn_of_other_distribution as _warn_of_other_distribution
from palimpsest._plans import plan as plan, smallest_budget as smallest_budget
from palimpsest._user import linop as linop, members_of_operators as _members_of_operators
from palimpsest.errors import (
    AliasError as AliasError,
    BudgetError as BudgetError,
    CommunicationError as CommunicationError,
    CycleError as CycleError,
    DebugModeError as DebugModeError,
    DeviceError as DeviceError,
    DisconnectedError as DisconnectedError,
    DTypeError as DTypeError,
    Error as Error,
    FormatError as FormatError,
    InconsistencyError as InconsistencyError,
    InternalError as InternalError,
    InvalidValueError as InvalidValueError,
    IoError as IoError,
    MissingInputError as MissingInputError,
    NanGuardError as NanGuardError,
    NotFoundError as NotFoundError,
    NotLinearError as NotLinearError,
    NotSupported as NotSupported,
    OpError as OpError,
    OutOfMemory as OutOfMemory,
    PalimpsestWarning as PalimpsestWarning,
    ReplaceError as ReplaceError,
    ShapeError as ShapeError,
    SplitError as SplitError,
    StateError as StateError,
    UnusedInputError as UnusedInputError,
)
from palimpsest.interop import (
    convert_mrd as convert_mrd,
    from_functions as from_functions,
    from_mrpro as from_mrpro,
    from_pylops as from_pylops,
    from_scipy as from_scipy,
    from_sigpy as from_sigpy,
    map_chunks as map_chunks,
    register_threadpoolctl as register_threadpoolctl,
)
from palimpsest.user_ops import Apply as Apply, Op as Op, as_op as as_op

# These modules replace the submodules of _core that have the same names.
import palimpsest.errors as errors  # type: ignore[no-redef] # isort: skip
import palimpsest.ops as ops  # type: ignore[no-redef] # isort: skip

_core._show(globals(), "palimpsest", "")
_core._note_origins(__file__)
_warn_of_other_distribution(__file__)
cg = conjugate_gradients  # noqa: F405

_added: dict[type, dict[str, object]] = {
    Function: {"__signature__": _interop.FunctionSignature()},
    NamedLinop: {"as_scipy": _interop.as_scipy, "as_pylops": _interop.as_pylops, "as_sigpy": _interop.as_sigpy,
                 "as_deepinv": _interop.as_deepinv, "as_mrpro": _interop.as_mrpro,
                 "_repr_html_": _notebook.operator_html, **_members_of_operators},
    Plan: {"_repr_html_": _notebook.plan_html},
    SolvePlan: {"_repr_html_": _notebook.solve_plan_html},
    Tensor: {"_repr_html_": _notebook.tensor_html},
}
for _class, _members in _added.items():
    for _member, _function in _members.items():
        setattr(_class, _member, _function)


# Called by plan(), and by their old names.
del plan_reconstruct, plan_espirit  # noqa: F821

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    torch: Any
    jax: Any
else:

    def __getattr__(name: str) -> object:
        """palimpsest.torch and palimpsest.jax, which import those packages, and names of earlier releases."""
        if name in ("torch", "jax"):
            return _importlib.import_module("palimpsest.interop." + name)
        from palimpsest._renamed import advice, renamed

        if (function := renamed(name)) is not None:
            return function
        raise AttributeError(f"module 'palimpsest' has no attribute '{name}'{advice(name)}")


def _is_letter_constructor(name: str) -> bool:
    """True for dvector, fmatrices and so on: constructors of Variables by a letter for the dtype."""
    kinds = ("scalar", "vector", "matrix", "matrices", "tensor3", "tensor4", "tensor5", "row", "col")
    return name[:1] in "bwilfdcz" and name[1:].removesuffix("s") in (*kinds, "matrice")


__all__ = sorted(
    _name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)
    and _name != "TYPE_CHECKING" and not _is_letter_constructor(_name)
)


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__version__"]
