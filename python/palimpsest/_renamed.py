# SPDX-License-Identifier: Apache-2.0
"""Names of earlier releases. They work for one release, with a warning that says the new ones."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

from palimpsest import _core
from palimpsest._core import Prox
from palimpsest._plans import plan, smallest_budget


def _solver(verb: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *arguments, **options: verb(getattr(_core, name), *arguments, **options)


def _method(name: str) -> Callable[..., Any]:
    return lambda g, *arguments, **options: getattr(Prox, name)(g, *arguments, **options)


#: Old name: what to write now, and the function that does it.
_NEW: dict[str, tuple[str, Callable[..., Any]]] = {
    **{f"plan_{name}": (f"plan({name}, ..)", _solver(plan, name)) for name in ("conjugate_gradients", "fista", "minimize", "svd")},
    "plan_reconstruct": ("plan(reconstruct, ..)", lambda *a, **o: _core.plan_reconstruct(*a, **o)),
    "plan_espirit": ("plan(espirit, ..)", lambda *a, **o: _core.plan_espirit(*a, **o)),
    "smallest_cg_budget": ("smallest_budget(cg, ..)", _solver(smallest_budget, "conjugate_gradients")),
    "smallest_minimize_budget": ("smallest_budget(minimize, ..)", _solver(smallest_budget, "minimize")),
    **{name: (f"g.{name}(..)", _method(name)) for name in
       ("weighted", "scaled", "translated", "plus_quadratic", "with_unitary", "conjugate", "moreau_envelope")},
    "on": ("g.on_part(..)", _method("on_part")),
    "stacked": ("Prox.stacked(..)", lambda *a, **o: Prox.stacked(*a, **o)),
}


#: Name in another package: what to use.
_ELSEWHERE = {
    **dict.fromkeys(("array", "from_numpy"), "asarray"),
    **dict.fromkeys(("eigs", "eigsh"), "lanczos"),
    **dict.fromkeys(("FirstDerivative", "SecondDerivative", "Laplacian"), "FiniteDifference and Gradient"),
    **dict.fromkeys(("FFT2D", "FFTND", "fft", "fft2", "fftn"), "Fft(2, centered=False)"),
    **dict.fromkeys(("LinearOperator", "Linop"), "linop, from_functions, or a class of NamedLinop"),
    "MatrixMult": "Dense",
    "MatMul": "Dense",
    "Multiply": "Diagonal",
    "aslinearoperator": "Dense for a matrix, from_scipy for a LinearOperator",
    "dottest": "dot_test",
    "nn": "torch.Module",
    "svds": "svd",
    "to_device": "A.to(device) and asarray(x, device=device)",
}


def advice(name: str) -> str:
    """What to use in place of a name that another package has; empty: not known."""
    return f". Try {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""


def renamed(name: str) -> Callable[..., Any] | None:
    """The function of an old name; None for other names."""
    if name not in _NEW:
        return None
    new, function = _NEW[name]

    @functools.wraps(function)
    def old(*arguments: Any, **options: Any) -> Any:
        warnings.warn(f"palimpsest.{name} is now {new}", DeprecationWarning, stacklevel=2)
        return function(*arguments, **options)

    old.__name__ = name
    return old
