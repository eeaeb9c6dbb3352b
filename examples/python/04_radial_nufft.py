# SPDX-License-Identifier: Apache-2.0
"""A radial scan: non-uniform Fourier transforms, gridding against iteration, and a faster normal operator.

Gridding weights the samples by the area that each stands for. Conjugate gradients solve for the image;
with toeplitz=True the normal operator is a convolution and grids nothing.
"""

# %% The scan: a quarter of the spokes that would be needed
import time

import matplotlib.pyplot as plt
import numpy as np

import palimpsest as ps

N = 128
image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype("complex64")
trajectory = ps.radial_trajectory(spokes=50, samples=2 * N, golden=1)
locs = ps.coordinates_of_grid(trajectory)
density = ps.density_compensation(trajectory, "pipe")


def model(toeplitz):
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


def error(x):
    return np.linalg.norm(x - image) / np.linalg.norm(image)


print(f"errors: gridded {error(gridded):.3f}, iterated {error(found[False].x):.3f}, {error(found[True].x):.3f}")

# %% Plot
figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), constrained_layout=True)
axes[0].plot(trajectory[:8, :, 0].T, trajectory[:8, :, 1].T, ".", markersize=1)
axes[0].set(title="eight spokes", aspect="equal", xlabel="cycles per field of view")
for ax, (title, x) in zip(axes[1:], {"object": image, "gridded": gridded, "iterated": found[True].x}.items()):
    ax.imshow(np.abs(x), cmap="gray", vmin=0, vmax=0.6)
    ax.set(title=title, xticks=[], yticks=[])
figure.savefig("radial_nufft.png", dpi=90)
