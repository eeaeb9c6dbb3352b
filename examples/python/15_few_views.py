# SPDX-License-Identifier: Apache-2.0
"""Tomography from 30 views: filtered backprojection, least squares, total variation.

Filtered backprojection is exact for many views and makes streaks of few. Total variation, with values that are not
negative, finds the object from the same data.
"""

# %% The scan
import numpy as np
import pictures

import palimpsest as ps

N, VIEWS = 128, 30
image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype("float32")
angles = (np.arange(VIEWS) * np.pi / VIEWS).astype("float32")
R = ps.Radon(angles, (N, N), n_detectors=N + 57)
rng = np.random.default_rng(0)
sinogram = R(image)
sinogram = (sinogram + 0.005 * sinogram.max() * rng.standard_normal(sinogram.shape)).astype("float32")

# %% Filtered backprojection: the ramp filter along the detector, then the adjoint
ramp = np.abs(np.fft.fftfreq(sinogram.shape[1]))
filtered = np.fft.ifft(np.fft.fft(sinogram, axis=1) * ramp, axis=1).real.astype("float32")
back = R.H(filtered) * (np.pi / VIEWS)

# %% Least squares, and total variation
squares = ps.cgls(R, sinogram, max_iterations=12, tolerance=0).x
objective = ps.Objective(R, terms=[ps.tv_term(0.15, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, objective, sinogram, max_iterations=500)

# %% Plot
figure = pictures.Figure(5, width=2.5)
figure.image("sinogram", sinogram, labels=("detector", "view"), aspect="auto")
figure.image("object", image, low=0, high=0.6)
results = {"filtered backprojection": back, "least squares": squares, "total variation": found.result.x}
for title, shown in results.items():
    figure.image(f"{title}, {pictures.error(shown, image):.3f}", shown, low=0, high=0.6)
figure.memory(found)
figure.save("few_views.png")
