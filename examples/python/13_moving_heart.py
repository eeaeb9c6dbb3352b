# SPDX-License-Identifier: Apache-2.0
"""A beating heart: sixteen frames from a sixth of their k-space each.

Frames that are solved alone have too few samples. Blocks of low rank along time share what stays the same, so that the
series is sharp in space and in time.
"""

# %% The series: a ring that contracts, in a body that rests
from typing import Any

import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N, T, COILS = 72, 16, 4
body = [ps.Ellipse(0.5, 0.8, 0.65), ps.Ellipse(0.2, 0.15, 0.2, 0.45, 0.1), ps.Ellipse(-0.2, 0.2, 0.3, -0.4, 0.0)]


def frame(t: int) -> NDArray[np.float32]:
    r = 0.26 + 0.06 * np.cos(2 * np.pi * t / T)
    ring = [ps.Ellipse(0.5, r, r, 0.02, -0.05), ps.Ellipse(-0.35, r - 0.1, r - 0.1, 0.02, -0.05)]
    image: NDArray[np.float32] = ps.ellipse_image([*body, *ring], N, N)
    return image


series = np.stack([frame(t) for t in range(T)]).astype("complex64")
maps = ps.ring_coil_maps(COILS, N, N)
lines = ps.line_patterns(N, lines=8, frames=T, golden=True, center=4)
mask = np.repeat(np.asarray(lines)[:, :, None], N, axis=2)
kspace = ps.sense_model(maps, mask=mask)(series)
rng = np.random.default_rng(0)
noise = rng.standard_normal((2, *kspace.shape)).astype("float32") * 0.003
kspace = ((kspace + noise[0] + 1j * noise[1]) * mask[:, None]).astype("complex64")
print(f"acceleration {mask.size / mask.sum():.1f}")

# %% Frame by frame, and as blocks of low rank along time
A = ps.sense_model(maps, mask=mask)
options: dict[str, Any] = {"max_iterations": 40, "tolerance": 0.0, "L": 1.0}
alone = ps.fista(A, ps.L1Wavelet(0.004, "Ny Nx", dims="T Ny Nx"), kspace, **options).x
low_rank = ps.LocallyLowRank(0.02, {"Ny": 8, "Nx": 8}, "T", shift="random", dims="T Ny Nx")
found = pictures.run(ps.fista, A, low_rank, kspace, **options)
together = found.result.x

# %% Plot: a frame, and a row over time
figure = pictures.Figure(4)
figure.image("frame 5", np.abs(series[5]), low=0, high=1)
for title, shown in {"alone": alone, "low rank": together}.items():
    figure.image(f"{title}, error {pictures.error(shown, series):.3f}", np.abs(shown[5]), low=0, high=1)
rows = np.concatenate([np.abs(a[:, N // 2]) for a in (series, alone, together)], axis=0)
figure.image("a row over time: true, alone, low rank", rows, low=0, high=1, aspect="auto", labels=("x", "frame"))
figure.memory(found)
figure.save("moving_heart.png")
