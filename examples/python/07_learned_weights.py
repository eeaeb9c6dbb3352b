# SPDX-License-Identifier: Apache-2.0
"""Learned weights: gradient descent trains the step sizes inside an unrolled solver.

Eight steps x <- x - D A^T (A x - b) deblur a signal. D scales each frequency by a weight of its own. The gradient of
the loss runs through the operators; one compiled function makes a training step and updates the weights in place.
"""

# %% The blur, and training signals: steps of random heights at random places
import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N, STEPS, RATE = 128, 8, 20.0
rng = np.random.default_rng(0)
kernel = np.exp(-0.5 * (np.arange(-8, 9) / 2.5) ** 2)
A = ps.Convolution(kernel / kernel.sum(), batch="B", grid="N", out="N", boundary="circular")


def signals(n: int) -> NDArray[np.float64]:
    jumps = (rng.random((n, N)) < 0.04) * rng.standard_normal((n, N))
    jumps[:, -1] -= jumps.sum(axis=1)  # the ends meet
    steps = jumps.cumsum(axis=1)
    return np.asarray(steps - steps.mean(axis=1, keepdims=True))


def seen(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return A(x) + 0.02 * rng.standard_normal(x.shape)


# %% The solver as a graph, and a training step
weights = ps.shared(np.ones(N // 2 + 1), "weights")
momentum = ps.shared(np.zeros(N // 2 + 1), "momentum")
b, truth = ps.tensor("float64", (64, N), "b"), ps.tensor("float64", (64, N), "truth")
x = b * 0.0
for _ in range(STEPS):
    x = x - ps.ops.irfft(ps.ops.rfft(A.H(A(x) - b)) * weights, N)
loss = ps.ops.mean((x - truth) ** 2)
push = 0.9 * momentum + ps.grad(loss, weights)
train = ps.function([b, truth], loss, updates={momentum: push, weights: weights - RATE * push})
solve = ps.function([b], x)
test = signals(64)
data = seen(test)
plain = solve(data)
announced = train.plan(data, test).peak_bytes

# %% Training, and the loss of signals that it has not seen
losses = []
for step in range(400):
    batch = signals(64)
    train(seen(batch), batch)
    losses.append(np.mean((solve(data) - test) ** 2))
train.free()  # its memory, which it keeps for the next call
with ps.MemoryScope() as memory:
    train(data, test)
learned = solve(data)

# %% Plot
figure = pictures.Figure(3, width=3.6)
figure.curves("loss of new signals", {"": losses}, labels=("training step", "mean square")).set_yscale("log")
steps = {"learned": weights.get_value(), "before": np.ones(N // 2 + 1)}
figure.curves("weights", steps, labels=("frequency", "step size"))
shown = {f"seen, error {pictures.error(data, test):.2f}": data[5],
         f"equal steps, {pictures.error(plain, test):.2f}": plain[5],
         f"learned, {pictures.error(learned, test):.2f}": learned[5], "truth": test[5]}
figure.curves("a signal", shown, labels=("place", "height"))
figure.note(f"memory of a training step: announced {announced:,} bytes, measured {memory.peak_bytes:,} bytes")
figure.save("learned_weights.png")
