# SPDX-License-Identifier: Apache-2.0
"""A radial scan: non-uniform Fourier transforms, gridding against iteration, and a faster normal operator.

Gridding weights the samples by the area that each stands for. Conjugate gradients solve for the image;
with toeplitz=True the normal operator is a convolution and grids nothing.
"""

# %% The scan: a quarter of the spokes that would be needed
import time

import numpy as np
import pictures

import palimpsest as ps

N = 128
image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype("complex64")
trajectory = ps.radial_trajectory(spokes=50, samples=2 * N, golden=1)
locs = ps.coordinates_of_grid(trajectory)
density = ps.density_compensation(trajectory, "pipe")


def model(toeplitz: bool) -> ps.NamedLinop:
    return ps.Nufft(locs, (N, N), "S R", input="Ny Nx", eps=1e-4, toeplitz=toeplitz)


A = model(False)
samples = A(image)

# %% Gridding: one weighted adjoint
W = ps.Diagonal(density.astype("complex64"), "S R")
gridded = A.H(W(samples))
gridded *= np.vdot(gridded, image) / np.vdot(gridded, gridded)

# %% Iteration, with both normal operators
found = {}
for toeplitz in (False, True):
    B = model(toeplitz)
    b = B.H(samples)
    N_op = B.N
    N_op(b)  # compiles, and makes the kernel of the convolution
    start = time.perf_counter()
    found[toeplitz] = ps.conjugate_gradients(N_op, b, max_iterations=30, tolerance=0)
    print(f"toeplitz={toeplitz}: {time.perf_counter() - start:.2f} s")
solve = pictures.run(ps.cg, model(True).N, b, max_iterations=30, tolerance=0)

# %% Plot
figure = pictures.Figure(4)
spokes = figure.axes("eight of 50 spokes")
spokes.plot(trajectory[:8, :, 0].T, trajectory[:8, :, 1].T, ".", markersize=1)
spokes.set(aspect="equal", xlabel="cycles per field of view")
figure.image("object", np.abs(image), low=0, high=0.6)
for title, x in {"gridded": gridded, "iterated": solve.result.x}.items():
    figure.image(f"{title}, error {pictures.error(x, image):.3f}", np.abs(x), low=0, high=0.6)
figure.memory(solve)
figure.save("radial_nufft.png")
