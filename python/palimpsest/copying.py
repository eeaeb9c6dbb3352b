# SPDX-License-Identifier: Apache-2.0
"""Copies of operators with the same sharing between their parts as in the original."""

from typing import Any

from palimpsest._core import memory_aware_to, memory_report

__all__ = ["memory_aware_deepcopy", "memory_aware_to", "memory_report"]


def memory_aware_deepcopy(A: Any) -> Any:
    """A copy of A that shares no writable memory with A. Views stay views."""
    return A.deepcopy(eager=True)
