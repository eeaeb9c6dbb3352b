# SPDX-License-Identifier: Apache-2.0
"""Ops that overwrite their first operand, for functions with accept_inplace=True."""

from palimpsest._core.ops.inplace import *  # noqa: F403
