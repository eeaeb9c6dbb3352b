# SPDX-License-Identifier: Apache-2.0
"""Names of SigPy that are not mapped: each says what is nearest."""

from typing import Any

from palimpsest.errors import NotSupported


def refuse(what: str, nearest: str) -> NotSupported:
    return NotSupported(f"[palimpsest.sigpy] {what} is not mapped. The nearest is {nearest}.")


def missing(module: str, names: dict[str, str]) -> dict[str, Any]:
    """Functions that raise NotSupported, by their names.

    Parameters
    ----------
    names : dict of str to str
        What is nearest to each.
    """

    def of(name: str, nearest: str) -> Any:
        def refused(*arguments: Any, **options: Any) -> Any:
            raise refuse(f"{module}.{name}", nearest)

        refused.__name__ = name
        refused.__doc__ = f"Not mapped; the nearest is {nearest}."
        return refused

    return {name: of(name, nearest) for name, nearest in names.items()}
