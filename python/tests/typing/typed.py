# SPDX-License-Identifier: Apache-2.0
"""A typed program for mypy. Lines that mypy refuses give its message after `# E:`. It is never run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import palimpsest as ps
import palimpsest.ops as ops

array: NDArray[np.float64] = np.ones(4)
A: ps.NamedLinop = ps.Chain(ps.Identity("N"), ps.Fft(1, norm="ortho"))
D: ps.NamedLinop = ps.Dense(array.reshape(2, 2), "MN,N->M")
same_kind: NDArray[np.float64] = A(array)
variable: ps.Variable = A(ps.dvector("x"))
product: ps.NamedLinop = A @ A.H
from_list: NDArray[Any] = A([1.0, 2.0])
tensor: ps.Tensor = A(ps.ones(4))

x = ps.dvector("x")
f: ps.Function = ps.function([x], ops.exp(x) + 1)
g: ps.Variable = ps.grad(ops.sum(x), x)
both: list[ps.Variable] = ps.grad(ops.sum(x), [x])

result = ps.conjugate_gradients(A.N, array, tolerance=1e-3, callback=lambda info: info.iteration < 5)
iterations: int = result.iterations
converged: bool = result.converged
maps = ps.espirit(array, crop=None, kernel=4)
plan = ps.plan_conjugate_gradients(A.N, array)
peak: int = plan.peak_bytes

ps.conjugate_gradients(A, array, tolerence=1e-3)  # E: Unexpected keyword argument "tolerence"
ps.conjugate_gradients(array, array)  # E: Argument 1 .* expected "NamedLinop"
ps.espirit(array, kernel="six")  # E: Argument "kernel" .* expected "int"
wrong: int = result.residual  # E: "SolveResult" has no attribute "residual"
text: str = result.iterations  # E: Incompatible types in assignment
A @ "x"  # E: No overload variant
tensor + 1  # E: Unsupported operand types
ps.nothing  # E: Module has no attribute "nothing"
try:
    pass
except ps.ShapeError as error:
    ok: ValueError = error
