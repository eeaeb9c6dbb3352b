# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library. Each is also a subclass of a built-in exception of Python."""

import typing as _t

from palimpsest import _core
from palimpsest._core.errors import *  # noqa: F403
from palimpsest._core.errors import BudgetError, Error

# Facts are parsed from messages of the form `[subject] fault: got .., expected ... Try ...`.


def _found(error: _t.Any, pattern: str) -> _t.Any:
    import re

    match = re.search(pattern, str(error), re.DOTALL)
    return match[1] if match else None


def _number(text: _t.Any) -> _t.Any:
    return None if text is None else int(text)


def _op(self: _t.Any) -> str | None:
    """Subject of the message: an op, an operator, an argument; None without one."""
    text: str | None = _found(self, r"\A\[([^\]]*)\]")
    return text


def _axis(self: _t.Any) -> int | None:
    """The axis that is wrong."""
    number: int | None = _number(_found(self, r"\baxis (-?\d+)"))
    return number


def _got(self: _t.Any) -> str | None:
    """The given value."""
    text: str | None = _found(self, r"\bgot (.*?)(?:, expected|, the smallest|\. Try|\.?\n|\.?\Z)")
    return text


def _expected(self: _t.Any) -> str | None:
    """The expected value."""
    text: str | None = _found(self, r"\bexpected (.*?)(?:\. Try|\. The largest|\.?\n|\.?\Z)")
    return text


def _smallest_bytes(self: _t.Any) -> int | None:
    """The smallest budget that was found to suffice."""
    number: int | None = _number(_found(self, r"the smallest budget found is (\d+)") or
                                 _found(self, r"got a peak of (\d+)"))
    return number


def _sizes(self: _t.Any) -> dict[str, int]:
    """Tiles for that budget: lengths by dimensions; empty if nothing is cut."""
    text = _found(self, r"in tiles of \{(.*?)\}") or ""
    return {name.strip(): int(size) for name, size in (part.split(":") for part in text.split(",") if part)}


for _name, _get in (("op", _op), ("axis", _axis), ("got", _got), ("expected", _expected)):
    setattr(Error, _name, property(_get))
for _name, _get_of_budget in (("smallest_bytes", _smallest_bytes), ("sizes", _sizes)):
    setattr(BudgetError, _name, property(_get_of_budget))

_core._show(globals(), "palimpsest.errors", "")
