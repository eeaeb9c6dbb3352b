# SPDX-License-Identifier: Apache-2.0
"""Forms of objects for notebooks: HTML without scripts, with all text escaped."""

import json
from typing import Any

LARGEST = 50_000  # bytes of one form
OPEN_LEVELS = 3  # of a tree; deeper levels are folded
LISTED_BUFFERS = 5


def _escaped(text: Any) -> Any:
    from html import escape

    return escape(str(text))


def _bytes(n: Any) -> Any:
    """A number of bytes as text."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.4g} {unit}"
        n /= 1000
    return ""


def _table(rows: Any, head: Any) -> Any:
    cells = "".join(f"<th>{_escaped(c)}</th>" for c in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_escaped(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


# -- operators ----------------------------------------------------------------------------------


def _sides(A: Any) -> Any:
    sizes = A.sizes

    def side(dims: Any) -> Any:
        named = (f"{d}={sizes[str(d)]}" if str(d) in sizes else str(d) for d in dims)
        return ", ".join(named)

    return f"{side(A.ishape)} -> {side(A.oshape)}"


def _line(A: Any, n_bytes: Any) -> Any:
    text = f"<b>{_escaped(A.name)}</b> ({_escaped(_sides(A))})"
    parameters = [
        f"{name}: {p.dtype.name} {tuple(p.shape)}" for name, p in A.params.items() if p is not None]
    if parameters:
        text += f" <i>{_escaped('; '.join(parameters))}</i>"
    return text + (f" {_bytes(n_bytes)}" if n_bytes else "")


class _Room:
    """Number of bytes that are left for one form."""

    def __init__(self, size: Any) -> None:
        self.left = size

    def takes(self, text: Any) -> Any:
        self.left -= len(text.encode())
        return self.left > 0


def _tree(A: Any, level: Any, room: Any) -> Any:
    from palimpsest._core import operator_bytes

    line = _line(A, operator_bytes(A))
    if not room.takes(line + "<li><details><summary></summary><ul></ul></details></li>"):
        return "..."
    if not len(A.linops):
        return line
    items = []
    for child in A.linops:
        items.append(f"<li>{_tree(child, level + 1, room)}</li>")
        if room.left <= 0:
            break
    is_open = " open" if level < OPEN_LEVELS else ""
    return f"<details{is_open}><summary>{line}</summary><ul>{''.join(items)}</ul></details>"


def operator_html(A: Any) -> Any:
    """The tree of an operator, with names, sizes and bytes of data."""
    return f"<div class='palimpsest'>{_tree(A, 0, _Room(LARGEST - 1000))}</div>"


# -- plans --------------------------------------------------------------------------------------


def plan_html(plan: Any) -> Any:
    """The picture of a plan, and its largest buffers."""
    facts = json.loads(plan.to_json())
    largest = sorted(facts["buffers"], key=lambda b: -b["bytes"])[:LISTED_BUFFERS]
    rows = [
        (b["name"] or "-", b["kind"], _bytes(b["bytes"]), b["first_step"], b["last_step"])
        for b in largest
    ]
    head = f"<b>Plan</b>: {len(facts['steps'])} steps, peak {_bytes(facts['peak_bytes'])}"
    return (f"<div class='palimpsest'>{head}<br>{plan.to_svg()}"
            f"{_table(rows, ('buffer', 'kind', 'size', 'first step', 'last step'))}</div>")


def solve_plan_html(plan: Any) -> Any:
    """The memory of a solve by purpose, and the plan of a step."""
    kinds = ("peak", "state", "step", "result", "operator", "total")
    rows = [(kind, _bytes(getattr(plan, f"{kind}_bytes"))) for kind in kinds]
    return (f"<div class='palimpsest'><b>SolvePlan</b>{_table(rows, ('memory', 'size'))}"
            f"<details><summary>one step</summary>{plan_html(plan.step)}</details></div>")


# -- tensors ------------------------------------------------------------------------------------


def tensor_html(t: Any) -> Any:
    """Type and shape of a tensor, and its elements as repr shows them."""
    facts = f"{t.dtype.name} {tuple(t.shape)} on {t.device}, {_bytes(t.nbytes)}"
    shown = _escaped(repr(t))[: LARGEST // 2]
    return (f"<div class='palimpsest'><b>Tensor</b> {_escaped(facts)}"
            f"<details><summary>elements</summary><pre>{shown}</pre></details></div>")
