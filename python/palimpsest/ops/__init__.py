# SPDX-License-Identifier: Apache-2.0
"""Builders of graphs: functions of Variables, arrays and numbers."""

from palimpsest import _core
from palimpsest._core import as_variable, constant, grad, tensor  # noqa: F401
from palimpsest._core.ops import *  # noqa: F403
from palimpsest.ops import inplace  # noqa: F401

# What makes inputs of graphs belongs here, too: `pt.dmatrix("x")`.
_KINDS = ("scalar", "vector", "matrix", "tensor3", "tensor4", "tensor5", "row", "col")
_PLURALS = ("scalars", "vectors", "matrices", "tensor3s", "tensor4s", "tensor5s", "rows", "cols")
for _letter in ("", *"bwilfdcz"):
    for _kind in _KINDS + _PLURALS:
        globals()[_letter + _kind] = getattr(_core, _letter + _kind)

as_tensor_variable = as_variable
