# SPDX-License-Identifier: Apache-2.0
"""Tomography with an operator of one's own: projections of an object and its slice.

Projections are samples of the object's spectrum along radial lines (the Fourier slice theorem). The operator is written
as a function of Variables: its adjoint is derived.
"""

# %% The operator
import numpy as np
import pictures

import palimpsest as ps

N, N_ANGLES = 128, 60


@ps.linop
class Projections(ps.NamedLinop):
    """x (Ny, Nx) -> (A, R): line integrals, R along the detector."""

    @staticmethod
    def fn(A: ps.NamedLinop, x: ps.Variable) -> ps.Variable:
        spectrum = ps.ops.nufft(ps.ops.astype(x, "complex128"), A.locs, eps=1e-6)
        return ps.ops.fft_adjoint(spectrum, axes=[-1], norm="ortho", centered=True)


angles = np.arange(N_ANGLES) * np.pi / N_ANGLES
k = np.arange(N) - N // 2
locs = np.stack([np.outer(np.sin(angles), k), np.outer(np.cos(angles), k)], axis=-1)
A = Projections("Ny Nx", "A R", sizes={"Ny": N, "Nx": N, "A": N_ANGLES, "R": N}, locs=locs)
print(f"adjoint right: {ps.dot_test(A).ok}")

# %% Projections, with noise
image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype(complex)
rng = np.random.default_rng(0)
sinogram = A(image)
sinogram = sinogram + 0.01 * np.abs(sinogram).max() * rng.standard_normal(sinogram.shape)

# %% The slice: least squares with total variation, non-negative
objective = ps.Objective(A, terms=[ps.tv_term(0.05, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, objective, sinogram, max_iterations=300)

# %% Plot
figure = pictures.Figure(4)
figure.image("object", image.real, low=0, high=0.6)
figure.image("sinogram", sinogram.real.T, labels=("angle", "detector"), aspect="auto")
figure.image("adjoint", A.H(sinogram).real)
slice_ = found.result.x.real
figure.image(f"total variation, error {pictures.error(slice_, image.real):.3f}", slice_, low=0, high=0.6)
figure.memory(found)
figure.save("tomography.png")
