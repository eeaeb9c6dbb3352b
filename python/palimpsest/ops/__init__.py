# SPDX-License-Identifier: Apache-2.0
"""Builders of graphs: functions of Variables, arrays and numbers."""

from palimpsest import _core
from palimpsest._core import as_variable, constant, grad, tensor
from palimpsest._core import as_variable as as_tensor_variable
from palimpsest._core.ops import *  # noqa: F403
from palimpsest.ops import inplace  # type: ignore[no-redef]

_core._show(globals(), "palimpsest.ops", "ops.")
