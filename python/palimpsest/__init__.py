# SPDX-License-Identifier: Apache-2.0
"""Matrix-free linear operators on named dimensions, on a byte budget."""

import builtins as _builtins
import importlib as _importlib

from palimpsest import interop as _interop
from palimpsest import notebook as _notebook
from palimpsest._core import *  # noqa: F403
from palimpsest._core import __version__  # noqa: F401
from palimpsest._factories import Dense, Diagonal, Sampling  # noqa: F401
from palimpsest._user import linop  # noqa: F401
from palimpsest.errors import *  # noqa: F403
from palimpsest.interop import from_pylops, from_scipy, from_sigpy  # noqa: F401
from palimpsest.user_ops import Apply, Op, as_op  # noqa: F401

# The modules of these names, in place of the parts of _core that they show.
errors = _importlib.import_module("palimpsest.errors")
ops = _importlib.import_module("palimpsest.ops")


NamedLinop.as_scipy = _interop.as_scipy  # noqa: F405
NamedLinop.as_pylops = _interop.as_pylops  # noqa: F405
NamedLinop.as_sigpy = _interop.as_sigpy  # noqa: F405
NamedLinop._repr_html_ = _notebook.operator_html  # noqa: F405
Plan._repr_html_ = _notebook.plan_html  # noqa: F405
SolvePlan._repr_html_ = _notebook.solve_plan_html  # noqa: F405
Tensor._repr_html_ = _notebook.tensor_html  # noqa: F405


def __getattr__(name):
    """palimpsest.torch and palimpsest.jax, which import those packages."""
    if name in ("torch", "jax"):
        return _importlib.import_module("palimpsest.interop." + name)
    raise AttributeError(f"module 'palimpsest' has no attribute '{name}'")


# Errors that have the name of a built-in stay in palimpsest.errors.
for _name in errors.__all__:
    if hasattr(_builtins, _name):
        del globals()[_name]

__all__ = sorted(
    _name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)
)
