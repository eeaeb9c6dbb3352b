# SPDX-License-Identifier: Apache-2.0
"""Builders of graphs: functions of Variables, arrays and numbers."""

import importlib as _importlib

from palimpsest import _core
from palimpsest._core import as_variable, constant, grad, tensor
from palimpsest._core import as_variable as as_tensor_variable
from palimpsest._core.ops import *  # noqa: F403

_importlib.import_module("palimpsest.ops.inplace")  # replaces the submodule of _core.ops
_core._show(globals(), "palimpsest.ops", "ops.")
