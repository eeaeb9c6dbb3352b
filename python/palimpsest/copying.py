# SPDX-License-Identifier: Apache-2.0
"""Copies of operators with the same sharing between their parts as in the original."""

from typing import Any

from palimpsest._core import memory_aware_to, memory_report

__all__ = ["memory_aware_deepcopy", "memory_aware_to", "memory_report"]


def memory_aware_deepcopy(A: Any) -> Any:
    """An operator that shares no memory with `A` that can be written; views stay views."""
    return A.deepcopy(eager=True)
