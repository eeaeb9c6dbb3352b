# SPDX-License-Identifier: Apache-2.0
"""Partial Fourier: five eighths of k-space, and three ways to fill the rest.

Images whose phase varies slowly are known from little more than one half of k-space. Zeros blur them; the homodyne method
and projections onto convex sets (POCS) use the phase of the middle.
"""

# %% An image with a smooth phase, and 5/8 of its lines
import numpy as np
import pictures

import palimpsest as ps

N, FRACTION = 192, 0.625
y, x = np.mgrid[0:N, 0:N] / N - 0.5
head = ps.ellipse_image(ps.modified_shepp_logan(), N, N)
image = (head * np.exp(1j * (2 * x + 3 * y * y))).astype("complex64")
mask = ps.partial_pattern((N, N), FRACTION, 0)
full = ps.transform(image, [0, 1])
rng = np.random.default_rng(0)
noise = rng.standard_normal((2, N, N)) * 0.002 * np.abs(image).max()
kspace = ((full + noise[0] + 1j * noise[1]) * mask).astype("complex64")
lines = ps.partial_lines(mask)
assert lines is not None
print(f"{lines.acquired} of {lines.extent} lines, {lines.beyond_middle} beyond the middle")

# %% Three images
images = {
    "zeros": ps.transform(kspace, [0, 1], inverse=True),
    "homodyne": ps.homodyne(kspace, 0, FRACTION),
    "POCS": ps.pocs(kspace, mask, max_iterations=20),
}

# %% Plot: magnitudes, and the errors five times as bright
figure = pictures.Figure(4)
figure.image("magnitude", np.abs(image), low=0, high=0.6)
for title, found in images.items():
    wrong = np.abs(found) - head
    title = f"error of {title}, {pictures.error(np.abs(found), head):.3f}"
    figure.image(title, wrong, low=-0.12, high=0.12, colors="RdBu")
figure.note(f"{lines.acquired} of {lines.extent} lines of k-space were measured")
figure.save("partial_fourier.png")
