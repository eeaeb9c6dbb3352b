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

spectrum: NDArray[np.complex128] = ps.Fft(1)(array)
matrix: NDArray[Any] = ps.Radon(array, (4, 4))(array)


@ps.linop
def scaled(A: Any, x: Any) -> Any:
    return A.w * x


class Edge(ps.NamedLinop):
    @staticmethod
    def fn(A: Any, x: Any) -> Any:
        return A.w * (x - ops.roll(x, 1, axis=-1))


@ps.linop(name="a name in files")
class Shifted(ps.NamedLinop):
    def __init__(self, w: NDArray[Any], shift: int) -> None:
        super().__init__("N")
        self.w = w
        self.shift = shift

    @staticmethod
    def fn(A: Any, x: Any) -> Any:
        return A.w * ops.roll(x, A.shift, axis=-1)


made: list[ps.NamedLinop] = [scaled("N", w=array), Edge("N", w=array, name="edge"), Shifted(array, 2), 0 + A]
row: list[ps.Tensor] = list(tensor)
scaled(w=array)  # E: Too few arguments
Shifted(array)  # E: Missing positional argument "shift"

x = ps.dvector("x")
f: ps.Function = ps.function([x], ops.exp(x) + 1)
g: ps.Variable = ps.grad(ops.sum(x), x)
both: list[ps.Variable] = ps.grad(ops.sum(x), [x])

result = ps.conjugate_gradients(A.N, array, tolerance=1e-3, callback=lambda info: info.iteration < 5)
iterations: int = result.iterations
converged: bool = result.converged
maps = ps.espirit(array, crop=None, kernel=4)
plan = ps.plan(ps.cg, A.N, array)
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
