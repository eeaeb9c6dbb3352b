# SPDX-License-Identifier: Apache-2.0
"""Progress of a solve, for the option `progress` of solvers."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from palimpsest._core import SolveInfo


class _Bar:
    """The progress bar of tqdm, in notebooks its notebook form."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __call__(self, info: SolveInfo) -> None:
        self.bar.update(info.iteration - self.bar.n)
        self.bar.set_postfix(residual=f"{info.residual:.2e}", refresh=False)
        if info.iteration == self.bar.total:
            self.bar.close()


class _Lines:
    """One line a second on standard error."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self.last = time.monotonic()

    def __call__(self, info: SolveInfo) -> None:
        now = time.monotonic()
        if now - self.last < 1 and info.iteration < self.iterations:
            return
        self.last = now
        print(f"iteration {info.iteration} of {self.iterations}, residual {info.residual:.3e}",
              file=sys.stderr)


def reporter(progress: bool | Callable[[SolveInfo], object], iterations: int) -> Callable[[SolveInfo], object]:
    """The callback after each iteration.

    Parameters
    ----------
    progress : bool or callable
        True: tqdm where it is installed, else lines. A callable is called itself.
    iterations : int
        The largest number of iterations.
    """
    if callable(progress):
        return progress
    if progress is not True:
        raise TypeError(f"[progress] got {progress!r}, expected True, False or a function.")
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return _Lines(iterations)
    return _Bar(tqdm(total=iterations, unit="iteration"))
