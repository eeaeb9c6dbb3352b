# SPDX-License-Identifier: Apache-2.0
"""Matrix-free linear operators on named dimensions, on a byte budget."""

import builtins as _builtins
import importlib as _importlib

from palimpsest._core import *  # noqa: F403
from palimpsest._core import __version__  # noqa: F401
from palimpsest._factories import Dense, Diagonal, Sampling  # noqa: F401
from palimpsest._user import linop  # noqa: F401
from palimpsest.errors import *  # noqa: F403
from palimpsest.user_ops import Apply, Op, as_op  # noqa: F401

# The modules of these names, in place of the parts of _core that they show.
errors = _importlib.import_module("palimpsest.errors")
ops = _importlib.import_module("palimpsest.ops")



def _as_scipy(self, sizes=None, dtype=None):
    """A scipy.sparse.linalg.LinearOperator; see palimpsest.interop.scipy.as_scipy."""
    from palimpsest.interop.scipy import as_scipy

    return as_scipy(self, sizes, dtype)


NamedLinop.as_scipy = _as_scipy  # noqa: F405

# Errors that have the name of a built-in stay in palimpsest.errors.
for _name in errors.__all__:
    if hasattr(_builtins, _name):
        del globals()[_name]

__all__ = sorted(
    _name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)
)
