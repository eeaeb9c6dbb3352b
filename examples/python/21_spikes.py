# SPDX-License-Identifier: Apache-2.0
"""Spikes: a camera with dead and hot pixels, and a data term that does not believe every pixel.

Squares of large errors rule a least squares fit; sums of magnitudes let a few pixels be wrong. The primal-dual method
minimizes |A x - b|_1 with total variation.
"""

# %% Cells, the blur of the microscope, dead and hot pixels
import numpy as np
import pictures

import palimpsest as ps

N = 128
rng = np.random.default_rng(5)
y, x = np.mgrid[0:N, 0:N]
cells = np.zeros((N, N))
for cy, cx, r in zip(rng.uniform(10, N - 10, 16), rng.uniform(10, N - 10, 16), rng.uniform(7, 14, 16)):
    distance = np.hypot(y - cy, (x - cx) * 1.15)
    cells = np.maximum(cells, np.where(distance < r, 0.45, 0) + np.where(abs(distance - r + 1.5) < 1.5, 0.4, 0))
spread = np.exp(-(np.arange(-6, 7) ** 2) / 4.5)
kernel = np.outer(spread, spread)
A = ps.Convolution(kernel / kernel.sum(), batch=(), grid="Ny Nx", out="Ny Nx")
seen = A(cells) + 0.01 * rng.standard_normal((N, N))
broken = rng.random((N, N))
seen[broken < 0.04], seen[broken > 0.96] = 0.0, 1.0

# %% Squares and magnitudes
squares = ps.minimize(ps.Objective(A, terms=[ps.tv_term(0.05, "Ny Nx")], h=ps.NonNegative()), seen, max_iterations=300).x
rest = ps.Objective(A, terms=[ps.tv_term(0.03, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.pdhg, ps.L1(1.0), rest, seen, max_iterations=400, tolerance=0)

# %% Plot
figure = pictures.Figure(4)
figure.image("cells", cells, low=0, high=1)
for title, shown in {"8 % broken pixels": seen, "squares": squares, "magnitudes": found.result.x}.items():
    figure.image(f"{title}, error {pictures.error(shown, cells):.3f}", shown, low=0, high=1)
figure.memory(found)
figure.save("spikes.png")
