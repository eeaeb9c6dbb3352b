# SPDX-License-Identifier: Apache-2.0
"""Pictures with matplotlib, which is imported when one is drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palimpsest._core import History, Plan

__all__ = ["plot_history", "plot_plan"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(constrained_layout=True)[1]


def plot_history(history: History, ax: Any = None) -> Any:
    """Draw the residual of a solver over its iterations.

    Parameters
    ----------
    history : History
        Of a SolveResult.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> result = ps.conjugate_gradients(ps.Diagonal([1.0, 2.0], "N"), np.ones(2))
    >>> result.history.plot().get_xlabel()
    'iteration'
    """
    ax = _axes(ax)
    ax.semilogy(history.iteration, history.residual)
    ax.set(xlabel="iteration", ylabel="residual")
    ax.grid(alpha=0.3)
    return ax


def plot_plan(plan: Plan, ax: Any = None) -> Any:
    """Draw where the buffers of a plan lie in its arena, and during which steps.

    Parameters
    ----------
    plan : Plan
        Of a function, of an operator, or of one iteration of a solver.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> plan = ps.Scalar(2.0, "N").plan(np.ones(4))
    >>> plan.plot().get_ylabel()
    'bytes'
    """
    from matplotlib.patches import Rectangle

    ax = _axes(ax)
    facts = json.loads(plan.to_json())
    arena = [buffer for buffer in facts["buffers"] if buffer["kind"] == "arena" and buffer["bytes"] > 0]
    top = max((buffer["offset"] + buffer["bytes"] for buffer in arena), default=1)
    for i, buffer in enumerate(arena):
        first, last = max(buffer["first_step"], 0), buffer["last_step"]
        ax.add_patch(Rectangle((first - 0.5, buffer["offset"]), last - first + 1, buffer["bytes"],
                               facecolor=f"C{i % 10}", alpha=0.6, edgecolor="black", linewidth=0.5))
        # Only names that fit into their boxes.
        if buffer["bytes"] > 0.05 * top and last - first + 1 > 0.1 * plan.n_steps:
            ax.text((first + last) / 2, buffer["offset"] + buffer["bytes"] / 2, buffer["name"],
                    ha="center", va="center", fontsize=7, clip_on=True)
    ax.set(xlabel="step", ylabel="bytes", xlim=(-0.5, max(plan.n_steps - 0.5, 0.5)),
           ylim=(0, 1.05 * top), title=f"arena of {plan.arena_bytes:,} bytes")
    return ax
