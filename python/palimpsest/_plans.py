# SPDX-License-Identifier: Apache-2.0
"""Memory of solves before they run: plan() and smallest_budget()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, overload

from palimpsest import _core
from palimpsest.errors import BudgetError

if TYPE_CHECKING:
    from palimpsest._core import EspiritPlan, Function, MapsResult, NamedLinop, Plan, SolvePlan


@overload
def plan(solver: NamedLinop | Function, /, *arguments: Any) -> Plan: ...
@overload
def plan(solver: Callable[..., MapsResult], /, *arguments: Any, **options: Any) -> EspiritPlan: ...
@overload
def plan(solver: Callable[..., Any], /, *arguments: Any, **options: Any) -> SolvePlan: ...
def plan(solver: Any, /, *arguments: Any, **options: Any) -> Any:
    """Plan the memory of a call that does not run.

    The plan has the bytes that the call will take, exactly. It costs the compilation of what the call runs.

    Parameters
    ----------
    solver : function, NamedLinop or Function
        A solver such as `conjugate_gradients` or `minimize`, or `svd`, `power_method`, `reconstruct`, `espirit`; or an
        operator or a function, whose application is planned.
    *arguments : Any
        Arguments of the call. Data may be a TensorType, such as `TensorType("float32", (256, 256))`: no array is needed.
    **options : Any
        Keywords of the call, `budget` among them.

    Returns
    -------
    SolvePlan, of espirit EspiritPlan, of operators and functions Plan

    Raises
    ------
    BudgetError
        Nothing fits into the budget; `smallest_bytes` of the error would.
    ValueError
        The function is none of these.

    Examples
    --------
    >>> A = ps.Diagonal([1.0, 2.0], "N")
    >>> ps.plan(ps.cg, A, np.array([1.0, 2.0])).peak_bytes == ps.cg(A, np.array([1.0, 2.0])).peak_bytes
    True
    >>> ps.plan(ps.fista, A, ps.L1(0.5), ps.TensorType("float64", (2,))).state_bytes > 0
    True
    """
    if isinstance(solver, (_core.NamedLinop, _core.Function)):
        return solver.plan(*arguments, **options)
    name = getattr(solver, "__name__", "")
    if name in ("reconstruct", "espirit") and getattr(solver, "__module__", "") == "palimpsest":
        return getattr(_core, "plan_" + name)(*arguments, **options)
    return _core._plan(solver, arguments, options)


def smallest_budget(solver: NamedLinop | Callable[..., Any], /, *arguments: Any, **options: Any) -> int:
    """Find the smallest budget with which a solve, or an application of an operator, can run.

    Parameters
    ----------
    solver : function or NamedLinop
        A solver, as for `plan`, or an operator, which is cut by `split_to_budget`.
    *arguments : Any
        Arguments of the call, as for `plan`.
    **options : Any
        Keywords of the call. A `budget` among them does not count.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> A = ps.Diagonal(np.ones(1000), "N")
    >>> least = ps.smallest_budget(ps.cg, A, np.ones(1000))
    >>> ps.cg(A, np.ones(1000), budget=least).converged
    True
    """
    if isinstance(solver, _core.NamedLinop):
        return _core._smallest_budget(solver, *arguments, **options)
    try:
        found: int = plan(solver, *arguments, **{**options, "budget": 1}).total_bytes
    except BudgetError as error:
        if error.smallest_bytes is None:
            raise
        found = error.smallest_bytes
    return found
