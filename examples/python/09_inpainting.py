# SPDX-License-Identifier: Apache-2.0
"""Inpainting: seven of ten pixels are lost, and come back from the others.

The operator is a Diagonal of zeros and ones. Sparse wavelet coefficients and total variation fill the gaps, each in
its own way.
"""

# %% The picture, and the pixels that are left
import numpy as np
import pictures

import palimpsest as ps

N = 128
y, x = np.mgrid[0:N, 0:N] / N
shapes = [ps.Ellipse(0.3, 0.85, 0.7), ps.Ellipse(0.3, 0.3, 0.45, -0.3, 0.05, 20.0),
          ps.Ellipse(-0.2, 0.25, 0.2, 0.4, 0.25), ps.Ellipse(0.4, 0.08, 0.08, 0.4, 0.25),
          ps.Ellipse(0.3, 0.35, 0.06, 0.35, -0.3, -15.0)]
image = ps.ellipse_image(shapes, N, N).astype(float) * (1 + 0.2 * np.sin(9 * x + 4 * y))
rng = np.random.default_rng(2)
kept = rng.random((N, N)) < 0.3
A = ps.Diagonal(kept.astype(float), "Ny Nx")
seen = A(image) + 0.01 * kept * rng.standard_normal(image.shape)

# %% Two ways to fill the gaps
sparse = ps.L1Wavelet(0.008, "Ny Nx", family="db4", shift="random")
wavelets = ps.fista(A, sparse, seen, max_iterations=300, L=1.0, tolerance=0)
objective = ps.Objective(A, terms=[ps.tv_term(0.01, "Ny Nx")])
variation = pictures.run(ps.minimize, objective, seen, max_iterations=400)

# %% Plot
figure = pictures.Figure(4)
figure.image("picture", image, low=0, high=1.0)
for title, shown in {"30 % of the pixels": seen, "wavelets": wavelets.x, "total variation": variation.result.x}.items():
    figure.image(f"{title}, error {pictures.error(shown, image):.3f}", shown, low=0, high=1.0)
figure.memory(variation)
figure.save("inpainting.png")
