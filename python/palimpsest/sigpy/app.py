# SPDX-License-Identifier: Apache-2.0
"""The apps of SigPy.

`LinearLeastSquares` is a planned solve of this package for conjugate gradients and gradient methods whose functions it
knows: `plan()` tells the memory before `run()`, and `budget` bounds it. Other cases are the steps of `alg`, whose
operators are planned one by one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from palimpsest import _core
from palimpsest._core import SolvePlan, SolveResult
from palimpsest._plans import plan
from palimpsest.errors import NotSupported
from palimpsest.sigpy import _base, _functions as _f, linop as _linop, prox as _prox
from palimpsest.sigpy._missing import refuse
from palimpsest.sigpy.alg import ADMM, Alg, ConjugateGradient, GradientMethod, PowerMethod, PrimalDualHybridGradient


class App:
    """Runs a method: `app.run()`. Derived classes may have `_pre_update`, `_post_update`, `_summarize`, `_output`."""

    alg: Any

    def __init__(self, alg: Any, show_pbar: bool = True, leave_pbar: bool = True, record_time: bool = True) -> None:
        self.alg, self.show_pbar, self.leave_pbar, self.record_time = alg, show_pbar, leave_pbar, record_time
        self.time = [0.0]

    def _pre_update(self) -> None:
        pass

    def _post_update(self) -> None:
        pass

    def _summarize(self) -> None:
        pass

    def _output(self) -> Any:
        return None

    def run(self) -> Any:
        """Runs the method to its end, and returns the result."""
        start, bar = time.monotonic(), self._bar() if self.show_pbar else None
        while not self.alg.done():
            self._pre_update()
            self.alg.update()
            self._post_update()
            if self.record_time:
                self.time.append(time.monotonic() - start)
            self._summarize()
            if bar is not None:
                bar.update()
        if bar is not None:
            bar.close()
        return self._output()

    def _bar(self) -> Any:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            return None
        name = type(self if type(self) is not App else self.alg).__name__
        return tqdm(total=self.alg.max_iter, desc=name, leave=self.leave_pbar)


class MaxEig(App):
    """The largest eigenvalue of A, by the power method from a random start."""

    def __init__(self, A: _linop.Linop, dtype: Any = np.float64, device: Any = _f.cpu_device, max_iter: int = 30,
                 show_pbar: bool = True, leave_pbar: bool = True) -> None:
        self.x = _f.randn(A.ishape, dtype=dtype)
        super().__init__(PowerMethod(A, self.x, max_iter=max_iter), show_pbar, leave_pbar)

    def _output(self) -> Any:
        return self.alg.max_eig


_HOOKS = ("_pre_update", "_post_update", "_summarize")


class LinearLeastSquares(App):
    """min |A x - y|^2 / 2 + g(G x) + lamda / 2 |x - z|^2, proxg being that of g.

    Parameters
    ----------
    solver : str, optional
        "ConjugateGradient", "GradientMethod", "PrimalDualHybridGradient" or "ADMM". Default: the first that can.
    budget : int or str, optional
        Bytes that a planned solve may take: it cuts operators until it does. Not in SigPy.

    Notes
    -----
    After a planned solve `result` is its SolveResult, with history and peak; before one, `plan()` gives its SolvePlan.
    The alpha, tau and sigma that are not given are those of SigPy: by max_power_iter steps of the power method.
    """

    def __init__(self, A: _linop.Linop, y: Any, x: Any = None, proxg: Any = None, lamda: float = 0, G: Any = None,
                 g: Any = None, z: Any = None, solver: str | None = None, max_iter: int = 100, P: Any = None,
                 alpha: Any = None, max_power_iter: int = 30, accelerate: bool = True, tau: Any = None,
                 sigma: Any = None, rho: float = 1, max_cg_iter: int = 10, tol: float = 0,
                 save_objective_values: bool = False, show_pbar: bool = True, leave_pbar: bool = True, *,
                 budget: int | str | None = None) -> None:
        self.A, self.y, self.x, self.proxg, self.lamda, self.G, self.g, self.z = A, y, x, proxg, lamda, G, g, z
        self.solver = solver or ("ConjugateGradient" if proxg is None else
                                 "GradientMethod" if G is None else "PrimalDualHybridGradient")
        self.max_iter, self.P, self.alpha, self.max_power_iter = max_iter, P, alpha, max_power_iter
        self.accelerate, self.tau, self.sigma, self.rho = accelerate, tau, sigma, rho
        self.max_cg_iter, self.tol, self.budget = max_cg_iter, tol, budget
        self.save_objective_values = save_objective_values
        self.result: SolveResult | None = None
        if self.x is None:
            self.x = np.zeros(A.ishape, y.dtype)
        if not hasattr(self, "_" + self.solver):
            raise ValueError(f"[LinearLeastSquares] solver: got {self.solver!r}, expected one of ConjugateGradient, "
                             "GradientMethod, PrimalDualHybridGradient, ADMM.")
        if self.solver == "ConjugateGradient" and proxg is not None:
            raise ValueError("[LinearLeastSquares] proxg: got one for conjugate gradients, expected None.")
        if self.solver == "GradientMethod" and G is not None:
            raise ValueError("[LinearLeastSquares] G: got one for a gradient method, expected None.")
        self.objective_values: list[float] = [self.objective()] if save_objective_values else []
        self._solve = self._planned()
        if self._solve is None and budget is not None:
            raise refuse("a budget for this solver or these functions", "palimpsest.minimize")
        super().__init__(None if self._solve else self._alg(), show_pbar, leave_pbar)

    # -- planned by this package

    def _planned(self) -> Any:
        """The function, arguments and options of the solver; None where a user's function or step is in it."""
        if any(getattr(type(self), hook) is not getattr(LinearLeastSquares, hook) for hook in _HOOKS):
            return None
        if self.save_objective_values or self.z is not None and np.isscalar(self.z):
            return None
        try:
            if self.solver == "ConjugateGradient" and (self.P is None or isinstance(self.P, _linop.Linop)):
                return self._planned_cg()
            if self.solver == "GradientMethod" and self.accelerate and self.tol == 0 and np.ndim(self.alpha or 0) == 0:
                return self._planned_fista()
        except NotSupported:  # a proximal function that is not one of the library
            pass
        return None

    def _dtype(self) -> Any:
        single = not self.A._double and np.result_type(self.x, self.y) in ("float32", "complex64")
        kinds = [np.result_type(a).kind for a in (self.x, self.y)]
        return np.dtype((_base._SINGLE if single else _base._DOUBLE)["c" if "c" in kinds else "f"])

    def _planned_cg(self) -> Any:
        dtype = self._dtype()
        A = self.A.linop(dtype).N
        if self.lamda != 0:
            A = A + _core.Scalar(float(self.lamda), A.ishape)
        b = self.A.H(np.asarray(self.y))
        if self.lamda != 0 and self.z is not None:
            b = b + self.lamda * self.z
        b = np.asarray(b).astype(np.result_type(dtype, b), copy=False)
        norm = float(np.linalg.norm(b)) or 1.0
        options: dict[str, Any] = {"tolerance": min(self.tol / norm, 1.0)}
        if self.P is not None:
            options["M"] = _base._between(A.ishape, self.P.linop(dtype), A.ishape)
        return _core.conjugate_gradients, (A, b), options

    def _planned_fista(self) -> Any:
        dtype = self._dtype()
        double = bool(dtype in ("float64", "complex128"))
        h = _core.ZeroProx() if self.proxg is None else self.proxg.function(double)
        quadratics = []
        if self.lamda != 0:
            center = None if self.z is None else np.asarray(self.z).astype(dtype)
            quadratics = [_core.Quadratic(float(self.lamda), c=center)]
        objective = _core.Objective(self.A.linop(dtype), quadratics=quadratics, h=h)
        y = np.asarray(self.y).astype(dtype, copy=False)
        return _core.minimize, (objective, y), {
            "method": "fista", "restart": False, "tolerance": 0.0, "L": 1 / float(self._step())}

    def _options(self) -> Any:
        start = np.asarray(self.x).astype(self._dtype(), copy=False)
        return {**self._solve[2], "x0": start, "max_iterations": self.max_iter, "budget": self.budget}

    def plan(self) -> SolvePlan:
        """The memory of the solve, before it runs."""
        if self._solve is None:
            raise refuse("the plan of this solver or these functions", "palimpsest.plan")
        solve, arguments, _ = self._solve
        made: SolvePlan = plan(solve, *arguments, **self._options())
        return made

    def run(self) -> Any:
        """Solves, writes the result into x and returns it."""
        if self._solve is None:
            return super().run()
        solve, arguments, _ = self._solve
        result = self.result = solve(*arguments, **self._options(), progress=self.show_pbar or None)
        self.time += [float(s) for s in result.history.seconds]
        if np.iscomplexobj(result.x) and not np.iscomplexobj(self.x):
            self.x = result.x
        else:
            self.x[...] = result.x
        return self.x

    # -- step by step

    def _alg(self) -> Alg:
        made: Alg = getattr(self, "_" + self.solver)()
        return made

    def _hessian(self, weight: float) -> _linop.Linop:
        """A^H A + weight."""
        return self.A.N + weight * _linop.Identity(self.A.ishape) if weight else self.A.N

    def _right_side(self) -> Any:
        b = self.A.H(self.y)
        return b if self.z is None or self.lamda == 0 else b + self.lamda * self.z

    def _max_eig(self, A: _linop.Linop) -> Any:
        return MaxEig(A, dtype=self.x.dtype, max_iter=self.max_power_iter, show_pbar=False).run()

    def _step(self) -> Any:
        if self.alpha is None:
            self.alpha = 1 / (self._max_eig(self._hessian(self.lamda)) or 1.0)
        return self.alpha

    def _ConjugateGradient(self) -> Alg:
        return ConjugateGradient(self._hessian(self.lamda), self._right_side(), self.x, self.P, self.max_iter, self.tol)

    def _GradientMethod(self) -> Alg:
        hessian, b = self._hessian(self.lamda), self._right_side()
        return GradientMethod(lambda x: hessian(x) - b, self.x, self._step(), self.proxg, self.accelerate,
                              self.max_iter, self.tol)

    def _PrimalDualHybridGradient(self) -> Alg:
        A, data = self.A, _prox.L2Reg(self.y.shape, 1, y=-self.y)
        of_dual: _prox.Prox = data
        proxg = self.proxg or _prox.NoOp(self.A.ishape if self.G is None else self.G.oshape)
        if self.G is None:
            of_x, gamma_dual = proxg, 1
        else:
            A = _linop.Vstack([A, self.G])
            of_dual, of_x, gamma_dual = _prox.Stack([data, _prox.Conj(proxg)]), _prox.NoOp(self.A.ishape), 0
        if self.lamda > 0:
            of_x = _prox.L2Reg(self.A.ishape, self.lamda, self.z, of_x)
        if self.tau is None:
            self.sigma = 1 if self.sigma is None else self.sigma
            self.tau = 1 / self._max_eig(A.H * _linop.Multiply(A.oshape, self.sigma) * A)
        elif self.sigma is None:
            self.sigma = 1 / MaxEig(A * _linop.Multiply(A.ishape, self.tau) * A.H, dtype=self.x.dtype,
                                    max_iter=self.max_power_iter, show_pbar=False).run()
        dual = np.zeros(A.oshape, self.y.dtype)
        return PrimalDualHybridGradient(of_dual, of_x, A, A.H, self.x, dual, self.tau, self.sigma,
                                        gamma_primal=max(self.lamda, 0), gamma_dual=gamma_dual, max_iter=self.max_iter,
                                        tol=self.tol)

    def _ADMM(self) -> Alg:
        G: Any = self.G or _linop.Identity(self.A.ishape)
        hessian = self._hessian(self.lamda + (0 if self.G else self.rho))
        if self.G is not None:
            hessian = hessian + self.rho * G.N
        b, v = self._right_side(), np.array(G(self.x))
        u = np.zeros_like(v)

        def of_x() -> None:
            inner = ConjugateGradient(hessian, b + self.rho * G.H(v - u), self.x, self.P, self.max_cg_iter)
            while not inner.done():
                inner.update()

        def of_v() -> None:
            v[...] = G(self.x) + u
            if self.proxg is not None:
                v[...] = self.proxg(1 / self.rho, v)

        return ADMM(of_x, of_v, self.x, v, u, G, -1 * _linop.Identity(v.shape), 0, self.max_iter)

    def _summarize(self) -> None:
        if self.save_objective_values:
            self.objective_values.append(self.objective())

    def _output(self) -> Any:
        return self.x

    def objective(self) -> float:
        """The value of the objective at x; g gives that of its part."""
        value = float(np.linalg.norm(self.A(self.x) - self.y)) ** 2 / 2
        value += self.lamda / 2 * float(np.linalg.norm(self.x if self.z is None else self.x - self.z)) ** 2
        if self.proxg is not None:
            if self.g is None:
                raise ValueError("[LinearLeastSquares] g: got None, expected the function that belongs to proxg.")
            value += float(self.g(self.x if self.G is None else self.G(self.x)))
        return value


class L2ConstrainedMinimization(App):
    """min g(G x) with |A x - y| <= eps, proxg being that of g."""

    def __init__(self, A: _linop.Linop, y: Any, proxg: Any, eps: float, x: Any = None, G: Any = None,
                 max_iter: int = 100, tau: Any = None, sigma: Any = None, show_pbar: bool = True) -> None:
        self.y, self.x = y, np.zeros(A.ishape, y.dtype) if x is None else x
        constraint: _prox.Prox = _prox.L2Proj(A.oshape, eps, y=y)
        if G is not None:
            constraint, proxg = _prox.Stack([constraint, proxg]), _prox.NoOp(A.ishape)
            A = _linop.Vstack([A, G])
        if tau is None or sigma is None:
            tau, sigma = 1, 1 / MaxEig(A.N, dtype=self.x.dtype, show_pbar=False).run()
        self.u = np.zeros(A.oshape, y.dtype)
        super().__init__(PrimalDualHybridGradient(_prox.Conj(constraint), proxg, A, A.H, self.x, self.u, tau, sigma,
                                                  max_iter=max_iter), show_pbar)

    def _output(self) -> Any:
        return self.x
