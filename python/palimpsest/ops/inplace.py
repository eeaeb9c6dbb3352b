# SPDX-License-Identifier: Apache-2.0
"""Ops that overwrite their first operand, for functions with accept_inplace=True."""

from palimpsest import _core
from palimpsest._core.ops.inplace import *  # noqa: F403

_core._show(globals(), "palimpsest.ops.inplace", "ops.inplace.")
