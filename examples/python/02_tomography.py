# SPDX-License-Identifier: Apache-2.0
"""Tomography with an operator of one's own: projections of an object and its slice.

Projections are samples of the object's spectrum along radial lines (the Fourier slice theorem). The
Radon operator is written as a function of Variables: its adjoint is derived.
"""

# %% The operator
import matplotlib.pyplot as plt
import numpy as np

import palimpsest as ps

N, N_ANGLES = 128, 90


@ps.linop
class Radon:
    """x (Ny, Nx) -> (A, R): line integrals, R along the detector."""

    def fn(A, x):
        spectrum = ps.ops.nufft(ps.ops.astype(x, "complex128"), A.locs, eps=1e-6)
        return ps.ops.fft_adjoint(spectrum, axes=[-1], norm="ortho", centered=True)


angles = np.arange(N_ANGLES) * np.pi / N_ANGLES
k = np.arange(N) - N // 2
locs = np.stack([np.outer(np.sin(angles), k), np.outer(np.cos(angles), k)], axis=-1)
A = Radon("Ny Nx", "A R", sizes={"Ny": N, "Nx": N, "A": N_ANGLES, "R": N}, locs=locs)
print(f"adjoint right: {ps.dot_test(A).ok}")

# %% Projections, with noise
image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype(complex)
rng = np.random.default_rng(0)
sinogram = A(image)
sinogram = sinogram + 0.01 * np.abs(sinogram).max() * rng.standard_normal(sinogram.shape)

# %% The slice: least squares with total variation, non-negative
objective = ps.Objective(A, terms=[ps.tv_term(0.05, "Ny Nx")], h=ps.NonNegative())
found = ps.minimize(objective, sinogram, max_iterations=300)
print(found.status, found.iterations)
print(f"error {np.linalg.norm(found.x - image) / np.linalg.norm(image):.3f}")

# %% Plot
figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), constrained_layout=True)
shown = {"object": image.real, "sinogram": sinogram.real.T, "adjoint": A.H(sinogram).real, "found": found.x.real}
for ax, (title, values) in zip(axes, shown.items()):
    ax.imshow(values, cmap="gray", aspect="auto" if title == "sinogram" else "equal")
    ax.set(title=title, xticks=[], yticks=[])
figure.savefig("tomography.png", dpi=90)
