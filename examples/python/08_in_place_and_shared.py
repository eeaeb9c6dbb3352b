# SPDX-License-Identifier: Apache-2.0
"""Ownership of memory: shared variables, in-place updates, the arena of a function, and a wrongly declared op.

A function reads and updates shared variables in place; the caller's arrays never change unless they are
lent. DebugMode runs each op on guarded copies and reports one that overwrites an input without declaring it.
"""

# %% State between calls: a running mean, updated in place
import ctypes
from typing import Any

import numpy as np
import pictures

import palimpsest as ps

x = ps.dvector("x")
mean = ps.shared(np.zeros(4), "mean")
count = ps.shared(0.0, "count")
step = ps.function([x], mean, updates={mean: mean + (x - mean) / (count + 1), count: count + 1})
given = np.array([1.0, 2.0, 3.0, 4.0])
for k in range(3):
    step(given * k)
print("mean of three calls:", mean.get_value(), "the argument is as it was:", given)

# %% A borrowed view of the same memory: writes are seen at once
borrowed = ps.shared(np.ones(2), borrow=True)
borrowed.get_value(borrow=True)[:] = 7
print("written through borrowed memory:", borrowed.get_value())

# %% Memory of a function: places of its buffers, and reused bytes
v = ps.dvector("v")
smooth = v
for _ in range(6):
    smooth = ps.ops.roll(smooth, 1, 0) * 0.5 + ps.ops.cumsum(smooth, 0) * 0.5
f = ps.function([v], ps.ops.sqrt(smooth * smooth + 1))
plan = f.plan(np.zeros(1000))
print(f"peak {plan.peak_bytes} bytes; without reuse it would be {plan.no_reuse_bytes}")


# %% A wrong declaration: the op changes its input but does not declare it
class Halve(ps.Op):
    """Works by address, as a routine of C that overwrites what it is given."""

    def make_node(self, x: ps.Variable) -> Any:
        return ps.Apply(self, [x], [x.type])

    def infer_shapes(self, node: Any, shapes: list[Any]) -> list[Any]:
        return [shapes[0]]

    def perform(self, node: Any, inputs: list[Any], outputs: list[Any]) -> None:
        x = inputs[0]  # a read-only array
        memory = np.frombuffer((ctypes.c_double * x.size).from_address(x.ctypes.data))
        memory /= 2
        outputs[0][...] = memory


argument = np.ones(2)
unchecked = ps.function([v], Halve()(v))
unchecked(argument)
print("without checks the argument is changed:", argument)
checked = ps.function([v], Halve()(v), mode=ps.DebugMode())
try:
    checked(np.ones(2))
except ps.DebugModeError as error:
    print("DebugMode:", str(error).splitlines()[0])

# %% Plot: the arena of the function
with ps.MemoryScope() as memory:
    f(np.zeros(1000))
figure = pictures.Figure(1, width=8)
plan.plot(ax=figure.axes("")).set_title("buffers of a function: the same bytes are used again by later steps")
figure.note(f"announced {plan.peak_bytes:,} bytes, measured {memory.peak_bytes:,}; without reuse {plan.no_reuse_bytes:,}")
figure.save("in_place_and_shared.png")
