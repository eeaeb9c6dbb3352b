# SPDX-License-Identifier: Apache-2.0
"""The methods of SigPy, step by step, on arrays and functions of a user.

They change their arrays in place, as SigPy's do. The apps use the planned solvers of this package where the step is the
same, and these where a user's function is in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palimpsest.sigpy._missing import missing


class Alg:
    """A method: `while not alg.done(): alg.update()`. Derived classes have `_update()` and may have `_done()`."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter, self.iter = max_iter, 0

    def _update(self) -> None:
        raise NotImplementedError(f"[{type(self).__name__}] expected a class with _update.")

    def _done(self) -> bool:
        return self.iter >= self.max_iter

    def update(self) -> None:
        self._update()
        self.iter += 1

    def done(self) -> bool:
        return self._done()


class PowerMethod(Alg):
    """The largest eigenvalue of A, `max_eig`, and its vector in x."""

    def __init__(self, A: Any, x: Any, norm_func: Any = None, max_iter: int = 30) -> None:
        super().__init__(max_iter)
        self.A, self.x, self.norm_func = A, x, norm_func or np.linalg.norm
        self.max_eig: Any = np.inf

    def _update(self) -> None:
        y = self.A(self.x)
        self.max_eig = self.norm_func(y)
        self.x[...] = y / self.max_eig


class GradientMethod(Alg):
    """Proximal gradient steps of length alpha, with Nesterov's momentum if accelerate."""

    def __init__(self, gradf: Any, x: Any, alpha: Any, proxg: Any = None, accelerate: bool = False, max_iter: int = 100,
                 tol: float = 0) -> None:
        super().__init__(max_iter)
        self.gradf, self.x, self.alpha, self.proxg, self.accelerate, self.tol = gradf, x, alpha, proxg, accelerate, tol
        self.z, self.t, self.resid = x.copy(), 1.0, np.inf

    def _update(self) -> None:
        before = self.x.copy()
        start = self.z if self.accelerate else self.x
        x = start - self.alpha * self.gradf(start)
        self.x[...] = x if self.proxg is None else self.proxg(self.alpha, x)
        change = self.x - before
        if self.accelerate:
            t, self.t = self.t, (1 + (1 + 4 * self.t**2) ** 0.5) / 2
            self.z = self.x + (t - 1) / self.t * change
        self.resid = float(np.linalg.norm(change / self.alpha))

    def _done(self) -> bool:
        return self.iter >= self.max_iter or self.resid <= self.tol


class ConjugateGradient(Alg):
    """A x = b for a Hermitian positive A; P is applied to residuals."""

    def __init__(self, A: Any, b: Any, x: Any, P: Any = None, max_iter: int = 100, tol: float = 0) -> None:
        super().__init__(max_iter)
        self.A, self.b, self.x, self.P, self.tol, self.not_positive_definite = A, b, x, P, tol, False
        self.r = b - A(x)
        self.p = self._preconditioned()
        self.rz = float(np.vdot(self.r, self.p).real)
        self.p = self.p.copy()
        self.resid = self.rz**0.5

    def _preconditioned(self) -> Any:
        return self.r if self.P is None else self.P(self.r)

    def _update(self) -> None:
        Ap = self.A(self.p)
        curvature = float(np.vdot(self.p, Ap).real)
        if curvature <= 0:
            self.not_positive_definite = True
            return
        alpha = self.rz / curvature
        self.x += alpha * self.p
        self.r = self.r - alpha * Ap
        z = self._preconditioned()
        rz = float(np.vdot(self.r, z).real)
        self.p = z + rz / self.rz * self.p
        self.rz, self.resid = rz, rz**0.5

    def _done(self) -> bool:
        return self.iter >= self.max_iter or self.not_positive_definite or self.resid <= self.tol


class PrimalDualHybridGradient(Alg):
    """min g(x) + f(A x) by steps tau of x and sigma of u, which may be arrays; faster for strong convexity gamma."""

    def __init__(self, proxfc: Any, proxg: Any, A: Any, AH: Any, x: Any, u: Any, tau: Any, sigma: Any, theta: float = 1,
                 gamma_primal: float = 0, gamma_dual: float = 0, max_iter: int = 100, tol: float = 0) -> None:
        super().__init__(max_iter)
        self.proxfc, self.proxg, self.A, self.AH, self.x, self.u = proxfc, proxg, A, AH, x, u
        self.tau, self.sigma, self.theta, self.tol = tau, sigma, theta, tol
        self.gamma_primal, self.gamma_dual = gamma_primal, gamma_dual
        self.x_ext, self.resid = x.copy(), np.inf

    def _update(self) -> None:
        self.u[...] = self.proxfc(self.sigma, self.u + self.sigma * self.A(self.x_ext))
        before = self.x.copy()
        self.x[...] = self.proxg(self.tau, self.x - self.tau * self.AH(self.u))
        theta = self.theta
        if self.gamma_primal > 0 and self.gamma_dual == 0:
            theta = 1 / (1 + 2 * self.gamma_primal * float(np.min(np.abs(self.tau)))) ** 0.5
            self.tau, self.sigma = self.tau * theta, self.sigma / theta
        elif self.gamma_dual > 0 and self.gamma_primal == 0:
            theta = 1 / (1 + 2 * self.gamma_dual * float(np.min(np.abs(self.sigma)))) ** 0.5
            self.tau, self.sigma = self.tau / theta, self.sigma * theta
        change = self.x - before
        self.resid = float(np.linalg.norm(change / self.tau**0.5))
        self.x_ext = self.x + theta * change

    def _done(self) -> bool:
        return self.iter >= self.max_iter or self.resid <= self.tol


class AltMin(Alg):
    """Two functions by turns."""

    def __init__(self, min1: Any, min2: Any, max_iter: int = 30) -> None:
        super().__init__(max_iter)
        self.min1, self.min2 = min1, min2

    def _update(self) -> None:
        self.min1()
        self.min2()


class AugmentedLagrangianMethod(Alg):
    """min f(x) with g(x) <= 0 and h(x) = 0; minL() minimizes the Lagrangian, with weights u, v and mu."""

    def __init__(self, minL: Any, g: Any, h: Any, x: Any, u: Any, v: Any, mu: float, max_iter: int = 30) -> None:
        super().__init__(max_iter)
        self.minL, self.g, self.h, self.x, self.u, self.v, self.mu = minL, g, h, x, u, v, mu

    def _update(self) -> None:
        self.minL()
        if self.g is not None:
            self.u[...] = np.maximum(self.u + self.mu * self.g(self.x), 0)
        if self.h is not None:
            self.v += self.mu * self.h(self.x)


class ADMM(Alg):
    """min f(x) + g(z) with A x + B z = c; minL_x() and minL_z() minimize the Lagrangian, u is scaled."""

    def __init__(self, minL_x: Any, minL_z: Any, x: Any, z: Any, u: Any, A: Any, B: Any, c: Any,
                 max_iter: int = 30) -> None:
        super().__init__(max_iter)
        self.minL_x, self.minL_z, self.x, self.z, self.u, self.A, self.B, self.c = minL_x, minL_z, x, z, u, A, B, c

    def _update(self) -> None:
        self.minL_x()
        self.minL_z()
        self.u += self.A(self.x) + self.B(self.z) - self.c


class NewtonsMethod(Alg):
    """Steps `inv_hessf(x)(gradf(x))`; beta < 1 shortens them until f falls enough."""

    def __init__(self, gradf: Any, inv_hessf: Any, x: Any, beta: float = 1, f: Any = None, max_iter: int = 10,
                 tol: float = 0) -> None:
        super().__init__(max_iter)
        if beta < 1 and f is None:
            raise ValueError("[NewtonsMethod] f: got None, expected a function for beta < 1.")
        self.gradf, self.inv_hessf, self.x, self.beta, self.f, self.tol = gradf, inv_hessf, x, beta, f, tol
        self.residual = np.inf

    def _update(self) -> None:
        gradient = self.gradf(self.x)
        step = -self.inv_hessf(self.x)(gradient)
        slope = float(np.vdot(gradient, step).real)
        self.residual = -slope
        alpha = 1.0
        if self.beta < 1:
            value = self.f(self.x)
            while self.f(self.x + alpha * step) > value + alpha / 2 * slope and alpha > 1e-12:
                alpha *= self.beta
        self.x += alpha * step

    def _done(self) -> bool:
        return self.iter >= self.max_iter or self.residual <= self.tol


class GerchbergSaxton(Alg):
    """x with |A x| = y: by turns the phase of A x, and least squares with lamb |x|^2."""

    def __init__(self, A: Any, y: Any, x0: Any, max_iter: int = 500, tol: float = 0, max_tol: float = 0,
                 lamb: float = 0) -> None:
        super().__init__(max_iter)
        self.A, self.y, self.x, self.tol, self.lamb, self.residual = A, y, x0, tol, lamb, np.inf

    def _update(self) -> None:
        phase = np.exp(1j * np.angle(self.A(self.x)))
        inner = ConjugateGradient(lambda x: self.A.N(x) + self.lamb * x, self.A.H(self.y * phase), self.x, max_iter=5)
        while not inner.done():
            inner.update()
        self.residual = float(np.abs(np.abs(self.A(self.x)) - self.y).sum())

    def _done(self) -> bool:
        return self.iter >= self.max_iter or self.residual <= self.tol


globals().update(missing("alg", {"SDMM": "palimpsest.admm, for an objective of several terms"}))
