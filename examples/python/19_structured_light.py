# SPDX-License-Identifier: Apache-2.0
"""Structured illumination: nine images under striped light give detail that the lens alone does not pass.

Stripes mix fine detail into the band that the lens passes. The model multiplies the sample by each pattern and blurs;
its least squares solution, not negative, has nearly twice the resolution.
"""

# %% The lens, the patterns, the sample
import numpy as np
import pictures

import palimpsest as ps

N, CUTOFF = 128, 0.11  # cycles per pixel
ky, kx = np.meshgrid(np.fft.fftfreq(N), np.fft.fftfreq(N), indexing="ij")
k = np.hypot(ky, kx) / CUTOFF
transfer = np.where(k < 1, 2 / np.pi * (np.arccos(np.minimum(k, 1)) - k * np.sqrt(np.maximum(1 - k**2, 0))), 0)
y, x = np.mgrid[0:N, 0:N]
angles, phases = np.deg2rad((10, 70, 130)), 2 * np.pi * np.arange(3) / 3
stripes = [0.18 * np.pi * (x * np.cos(a) + y * np.sin(a)) for a in angles]
patterns = np.stack([1 + 0.9 * np.cos(s + p) for s in stripes for p in phases])
r, phi = np.hypot(x - 64, y - 64), np.arctan2(y - 64, x - 64)
star = ((np.sin(36 * phi) > 0) & (r < 58) & (r > 12)).astype(float)

# %% The model: pattern, then blur; P counts the patterns
F = ps.Fft(2, batch="P", grid=("Ny Nx", "Ky Kx"))
blur = F | ps.Diagonal(transfer.astype(complex), "P Ky Kx", weight_shape="Ky Kx") | F.H
A = ps.Dense(patterns.astype(complex), "P Ny Nx, Ny Nx -> P Ny Nx") | blur
rng = np.random.default_rng(0)
data = A(star.astype(complex))
data = data + 0.01 * rng.standard_normal(data.shape)

# %% The widefield image deconvolved, and all nine images together
wide = data.mean(axis=0)
flat = ps.Fft(2, batch=(), grid=("Ny Nx", "Ky Kx"))
B = flat | ps.Diagonal(transfer.astype(complex), "Ky Kx") | flat.H
deconvolved = ps.fista(B, ps.NonNegative(), wide, max_iterations=150, tolerance=0).x.real
found = pictures.run(ps.fista, A, ps.NonNegative(), data, max_iterations=150, tolerance=0)
sharp = found.result.x.real

# %% Plot
figure = pictures.Figure(5, width=2.5)
figure.image("sample", star, low=0, high=1.2)
figure.image("one of nine images", data[0].real, low=0, high=2)
for title, shown in {"widefield": wide.real, "deconvolved": deconvolved, "nine together": sharp}.items():
    figure.image(f"{title}, error {pictures.error(shown, star):.2f}", shown, low=0, high=1.2)
figure.memory(found)
figure.save("structured_light.png")
