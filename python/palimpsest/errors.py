# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library, each also one of Python's own."""

from palimpsest import _core
from palimpsest._core.errors import *  # noqa: F403

_core._show(globals(), "palimpsest.errors", "")
