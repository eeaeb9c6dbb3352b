# SPDX-License-Identifier: Apache-2.0
"""Matrix-free linear operators on named dimensions, on a byte budget."""

from palimpsest._core import *  # noqa: F403
from palimpsest._core import __version__  # noqa: F401
