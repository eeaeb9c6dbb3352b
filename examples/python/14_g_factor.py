# SPDX-License-Identifier: Apache-2.0
"""Noise of parallel imaging: the g-factor, how much a pattern and coils amplify noise beyond the lost samples.

Images of white noise are reconstructed with and without the pattern; the ratio of their deviations is g. Eight coils
take two along one axis easily and three with loss; four are better shared by two axes.
"""

# %% Coils around the head, and uniform patterns
from typing import Any

import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N = 48
maps = ps.apply_mask(ps.ring_coil_maps(8, N, N), ps.ellipse_image([ps.Ellipse(1.0, 0.69, 0.92)], N, N) > 0.5)


def uniform(along_y: int, along_x: int) -> NDArray[np.bool_]:
    mask = np.zeros((N, N), bool)
    mask[::along_y, ::along_x] = True
    return mask


# %% The factors, from 40 images of noise each
options: dict[str, Any] = {"replicas": 40, "regularizers": ps.SquaredL2(1e-6), "max_iterations": 20}
found = {(r, s): ps.g_factor(maps, uniform(r, s), **options) for r, s in ((2, 1), (3, 1), (2, 2))}

# %% Plot
figure = pictures.Figure(4)
figure.image("coil 1 of 8", np.abs(maps[0]))
for (r, s), factor in found.items():
    inside = factor.g[factor.g > 0]
    print(f"acceleration {factor.acceleration:.1f}: g on average {inside.mean():.2f}, at most {inside.max():.2f}")
    figure.image(f"{r} x {s}: g {inside.mean():.2f} on average", factor.g, colors="viridis", low=1, high=4)
figure.note("standard deviation of noise over sqrt(acceleration) times that of the full pattern")
figure.save("g_factor.png")
