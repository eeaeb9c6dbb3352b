# SPDX-License-Identifier: Apache-2.0
"""Electron tomography: the holder hides the views beyond 60 degrees, a wedge of the object's spectrum.

What the wedge lacks, other knowledge must give: densities are not negative, and particles have sharp edges. Without it
they look longer along the beam than they are.
"""

# %% Particles in a thin section, seen from -60 to 60 degrees
import numpy as np
import pictures

import palimpsest as ps

N = 128
rng = np.random.default_rng(3)
particles = [ps.Ellipse(float(rng.uniform(0.5, 1.0)), r, r, *rng.uniform(-0.62, 0.62, 2).tolist())
             for r in rng.uniform(0.04, 0.13, 18)]
image = np.clip(ps.ellipse_image(particles, N, N), 0, 1).astype("float32")
angles = np.deg2rad(np.arange(-60, 61, 3)).astype("float32")
A = ps.Radon(angles, (N, N), n_detectors=N)
data = A(image)
data = (data + 0.03 * data.max() * rng.standard_normal(data.shape)).astype("float32")

# %% Least squares without and with what is known
plain = ps.cgls(A, data, max_iterations=8, tolerance=0).x
positive = ps.fista(A, ps.NonNegative(), data, max_iterations=60, tolerance=0).x
objective = ps.Objective(A, terms=[ps.tv_term(3.0, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, objective, data, max_iterations=300)

# %% Plot: images and the spectrum that was seen
spectrum = np.log10(np.abs(ps.transform(plain.astype("complex64"), [0, 1])) + 1e-3)
figure = pictures.Figure(5, width=2.5)
figure.image("particles", image, low=0, high=1)
for title, shown in {"least squares": plain, "not negative": positive, "total variation": found.result.x}.items():
    figure.image(f"{title}, {pictures.error(shown, image):.3f}", shown, low=0, high=1)
figure.image("spectrum of least squares", spectrum, colors="magma", unit="log10", low=-2, high=1)
figure.memory(found)
figure.save("missing_wedge.png")
