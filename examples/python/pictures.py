# SPDX-License-Identifier: Apache-2.0
"""What the programs of the gallery share: figures with colour bars and bytes, and solves with their memory measured."""

from __future__ import annotations

import io
from typing import Any, Callable, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from PIL import Image

import palimpsest as ps

plt.rcParams.update({"font.size": 8, "axes.titlesize": 9})


class Measured(NamedTuple):
    """Result of a solve, peak bytes that its plan announced, and peak bytes that were measured."""

    result: Any
    announced: int
    measured: int


def run(solver: Callable[..., Any], *arguments: Any, **options: Any) -> Measured:
    """Plan a solve, run it, and measure its memory."""
    announced = ps.plan(solver, *arguments, **options).peak_bytes
    with ps.MemoryScope() as memory:
        result = solver(*arguments, **options)
    return Measured(result, announced, memory.peak_bytes)


def error(found: NDArray[Any], truth: NDArray[Any]) -> float:
    """Norm of the difference over that of the truth."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


class Figure:
    """Axes side by side, filled from the left."""

    def __init__(self, columns: int, *, width: float = 2.7, height: float = 2.9) -> None:
        self.figure, axes = plt.subplots(1, columns, figsize=(width * columns, height), constrained_layout=True)
        self._axes = iter(np.atleast_1d(axes))

    def image(self, title: str, values: NDArray[Any], *, low: float | None = None, high: float | None = None,
              unit: str = "", colors: str = "gray", labels: tuple[str, str] | None = None, **options: Any) -> Axes:
        """Show an array with a colour bar. Without labels of the axes they have no ticks."""
        ax: Axes = next(self._axes)
        shown = ax.imshow(values, cmap=colors, vmin=low, vmax=high, **options)
        ax.set_title(title)
        if labels is None:
            ax.set(xticks=[], yticks=[])
        else:
            ax.set(xlabel=labels[0], ylabel=labels[1])
        bar = self.figure.colorbar(shown, ax=ax, shrink=0.8, pad=0.02)
        bar.set_label(unit)
        bar.ax.tick_params(labelsize=7)
        return ax

    def curves(self, title: str, curves: dict[str, Any], *, labels: tuple[str, str], x: Any = None) -> Axes:
        """Draw curves with a legend."""
        ax: Axes = next(self._axes)
        for name, values in curves.items():
            ax.plot(np.arange(len(values)) if x is None else x, values, label=name, linewidth=1.2)
        ax.set_title(title)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        if all(curves):
            ax.legend(fontsize=7)
        ax.grid(alpha=0.3)
        return ax

    def axes(self, title: str) -> Axes:
        """The next axes, empty."""
        ax: Axes = next(self._axes)
        ax.set_title(title)
        return ax

    def memory(self, run: Measured, what: str = "solve") -> None:
        """Write the bytes of a solve below the axes."""
        self.note(f"memory of the {what}: announced {run.announced:,} bytes, measured {run.measured:,} bytes")

    def note(self, text: str) -> None:
        """Write a line below the axes."""
        print(text)
        self.figure.supxlabel(text, fontsize=8)

    def save(self, name: str) -> None:
        """Write a PNG of 256 colours, which is small."""
        drawn = io.BytesIO()
        self.figure.savefig(drawn, dpi=90)
        full = Image.open(drawn).convert("RGB")
        full.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(name, optimize=True)
