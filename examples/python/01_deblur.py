# SPDX-License-Identifier: Apache-2.0
"""Deblurring: an image seen through a defocused lens, with noise, and its deconvolution.

The lens is a Convolution whose kernel is a disc. Least squares alone amplifies the noise into ripples; total variation
keeps the edges and leaves the areas between them flat.
"""

# %% The object and the lens
import numpy as np
import pictures

import palimpsest as ps

image = ps.ellipse_image(ps.modified_shepp_logan(), 192, 192).astype(float)
y, x = np.mgrid[-5:6, -5:6]
disc = (x**2 + y**2 <= 4.5**2).astype(float)
lens = ps.Convolution(disc / disc.sum(), batch=(), grid="Ny Nx", out="Ny Nx")

# %% The camera image: blurred, with noise of standard deviation 0.005
rng = np.random.default_rng(0)
seen = lens(image) + 0.005 * rng.standard_normal(image.shape)

# %% Least squares, stopped after 30 iterations, and total variation
squares = ps.cg_normal(lens, seen, max_iterations=30, tolerance=0).x
objective = ps.Objective(lens, terms=[ps.tv_term(8e-4, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, objective, seen, max_iterations=1000)

# %% Plot
figure = pictures.Figure(4)
figure.image("object", image, low=0, high=0.6)
for title, shown in {"seen": seen, "least squares": squares, "total variation": found.result.x}.items():
    figure.image(f"{title}, error {pictures.error(shown, image):.3f}", shown, low=0, high=0.6)
figure.memory(found)
figure.save("deblur.png")
