# SPDX-License-Identifier: Apache-2.0
"""Two energies: images that differ in contrast and share their edges.

The second energy has few photons. A total variation that takes both gradients together lets the good image show the
noisy one where edges are; each alone has to find its own.
"""

# %% The same organs with two contrasts, and their projections
import numpy as np
import pictures

import palimpsest as ps

N, VIEWS = 128, 45
places = [(0.85, 0.6, 0.0, 0.0, 0.0), (0.16, 0.24, 0.35, 0.1, 20.0), (0.14, 0.2, -0.4, 0.12, -15.0),
          (0.25, 0.1, 0.0, -0.3, 10.0), (0.06, 0.06, -0.05, 0.25, 0.0), (0.05, 0.05, 0.6, -0.15, 0.0),
          (0.04, 0.04, -0.62, -0.15, 0.0)]
contrast = np.array([(0.4, 0.5), (0.3, -0.15), (-0.2, 0.3), (0.2, 0.2), (0.5, 0.15), (0.6, 0.4), (0.6, 0.4)])
organs = [[ps.Ellipse(c, *place) for c, place in zip(of_energy, places)] for of_energy in contrast.T.tolist()]
image = np.stack([ps.ellipse_image(ellipses, N, N) for ellipses in organs])
angles = (np.arange(VIEWS) * np.pi / VIEWS).astype("float32")
A = ps.Radon(angles, (N, N), n_detectors=N, batch="E")
rng = np.random.default_rng(0)
data = A(image.astype("float32"))
noise = np.array([0.2, 1.5])[:, None, None] * rng.standard_normal(data.shape)
data = (data + noise).astype("float32")

# %% Each alone, and both together
separate = ps.Objective(A, terms=[ps.tv_term(20.0, "Ny Nx", dims="E Ny Nx")], h=ps.NonNegative())
alone = ps.minimize(separate, data, max_iterations=500).x
together = ps.Objective(A, terms=[ps.tv_term(20.0, "Ny Nx", joint="E", dims="E Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, together, data, max_iterations=500)

# %% Plot
figure = pictures.Figure(4)
figure.image("energy 1, both", found.result.x[0], low=0, high=1)
figure.image("energy 2", image[1], low=0, high=1)
for title, shown in {"alone": alone, "both": found.result.x}.items():
    figure.image(f"energy 2, {title}, error {pictures.error(shown[1], image[1]):.3f}", shown[1], low=0, high=1)
figure.memory(found)
figure.save("two_energies.png")
