# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library, each also one of Python's own."""

from palimpsest import _core

__all__ = sorted(_name for _name in dir(_core.errors) if not _name.startswith("_"))
globals().update({_name: getattr(_core.errors, _name) for _name in __all__})
