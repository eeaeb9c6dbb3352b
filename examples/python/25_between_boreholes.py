# SPDX-License-Identifier: Apache-2.0
"""Between two boreholes: a map of slowness from the travel times of straight rays.

A ray's time is the sum of slowness over its cells: a sparse matrix of lengths, made with NumPy. Most cells are crossed by
few rays or at similar angles, so that the map needs to be smooth; total variation keeps the edges of a cavity.
"""

# %% Rays from 24 sources to 24 receivers through cells of 1 m
import numpy as np
import pictures

import palimpsest as ps

NZ, NX, N = 48, 32, 24
depths = (np.arange(N) + 0.5) * NZ / N
points = (np.arange(4000) + 0.5) / 4000
lengths = np.zeros((N * N, NZ * NX))
for ray, (z0, z1) in enumerate((a, b) for a in depths for b in depths):
    cell = np.floor(z0 + (z1 - z0) * points).astype(int) * NX + np.floor(NX * points).astype(int)
    lengths[ray] = np.bincount(cell, minlength=NZ * NX) * np.hypot(NX, z1 - z0) / points.size
rows, columns = np.nonzero(lengths)
starts = np.searchsorted(rows, np.arange(N * N + 1))
matrix = ps.Sparse(lengths[rows, columns], columns, starts, NZ * NX, in_="N", out="M", batch=())
A = ps.Rearrange("Nz Nx -> (Nz Nx)", {"Nz": NZ, "Nx": NX}, in_="Nz Nx", out="N") | matrix

# %% The ground in milliseconds per metre: layers, a cavity, a dipping dyke
z, x = np.mgrid[0:NZ, 0:NX]
ground = np.where(z < 14, 0.55, np.where(z < 32, 0.45, 0.38))
ground = np.where((z - 22) ** 2 + (x - 11) ** 2 < 22, 0.75, ground)
ground = np.where(abs(z - 40 + 0.35 * x) < 1.6, 0.30, ground)
rng = np.random.default_rng(0)
times = A(ground)
times = times + 0.05 * rng.standard_normal(times.shape)

# %% Damped least squares, and total variation
start = np.full((NZ, NX), 0.45)
damped = start + ps.lsqr(A, times - A(start), damp=3.0, maxiter=300).x
objective = ps.Objective(A, terms=[ps.tv_term(0.25, "Nz Nx")], h=ps.Box(0.2, 1.0))
found = pictures.run(ps.minimize, objective, times, max_iterations=1500, x0=start)

# %% Plot
figure = pictures.Figure(4, width=2.4, height=3.2)
rays = figure.axes("every fifth ray")
for left in depths[::5]:
    for right in depths[::5]:
        rays.plot([0, NX], [left, right], color="gray", linewidth=0.5)
rays.set(xlabel="m", ylabel="depth in m", ylim=(NZ, 0), xlim=(0, NX), aspect="equal")
for title, shown in {"ground": ground, "least squares": damped, "total variation": found.result.x}.items():
    wrong = f", {pictures.error(shown, ground):.3f}" if title != "ground" else ""
    figure.image(title + wrong, shown, colors="viridis_r", low=0.25, high=0.8, unit="ms/m")
figure.memory(found)
figure.save("between_boreholes.png")
