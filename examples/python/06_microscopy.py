# SPDX-License-Identifier: Apache-2.0
"""Microscopy: a stack in two channels is deconvolved, split by name until it fits into memory.

Each channel has a blur of its own, wider at the longer wavelength and longer along the axis. The operator is cut along
the channels: each part solves for itself, and together they are what the whole gives.
"""

# %% The sample: threads and vesicles in a volume, and a blur for each channel
import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

C, NZ, NY, NX = 2, 24, 96, 96
rng = np.random.default_rng(4)
sample = np.zeros((C, NZ, NY, NX))
s = np.linspace(0, 1, 600)
for _ in range(14):  # threads: smooth curves
    start, bend = rng.uniform(8, 88, 2), rng.uniform(-60, 60, (2, 2))
    y, x = (start[i] + bend[i, 0] * s + bend[i, 1] * s**2 / 2 for i in range(2))
    z = np.clip(rng.uniform(5, 19) + 4 * np.sin(6 * s), 0, NZ - 1)
    inside = (y > 2) & (y < NY - 3) & (x > 2) & (x < NX - 3)
    sample[0][z[inside].astype(int), y[inside].astype(int), x[inside].astype(int)] = 1
zz, yy, xx = np.ogrid[0:NZ, 0:NY, 0:NX]
for _ in range(25):  # vesicles: small balls
    cz, cy, cx, r = *rng.uniform((4, 6, 6), (NZ - 4, NY - 6, NX - 6)), rng.uniform(1.2, 2.6)
    sample[1][(zz - cz) ** 2 + (yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1


def blur(channel: int) -> NDArray[np.float64]:
    """A Gaussian on the whole grid, centred at index 0, 2.5 times as long as wide."""
    z, y, x = (np.minimum(np.arange(n), n - np.arange(n)) for n in (NZ, NY, NX))
    width = 1.5 + 0.4 * channel
    shape = np.exp(-0.5 * ((z[:, None, None] / (2.5 * width))**2 + (y[:, None] / width)**2 + (x / width)**2))
    return np.asarray(shape / shape.sum())


F = ps.Fft(3, batch="C", grid=("Nz Ny Nx", "Kz Ky Kx"))
A = F | ps.Diagonal(np.stack([np.fft.fftn(blur(c)) for c in range(C)]), "C Kz Ky Kx") | F.H
seen = A(sample.astype(complex)).real
data = (seen + 0.003 * seen.max() * rng.standard_normal(seen.shape)).astype(complex)

# %% One channel at a time
h = ps.NonNegative()
options = {"max_iterations": 60, "tolerance": 0.0}
whole = ps.plan(ps.fista, A, h, data, **options)
runs = [pictures.run(ps.fista, A.split({"C": slice(c, c + 1)}), h, data[c:c + 1], **options) for c in range(C)]
found = np.concatenate([run.result.x for run in runs]).real
print(f"peak of both channels at once {whole.peak_bytes:,} bytes, of one {runs[0].announced:,}")

# %% Plot: maxima along z, one channel red and one green
figure = pictures.Figure(4, width=2.6)
for title, stack in {"sample": sample, "seen": seen, "found": found}.items():
    wrong = "" if stack is sample else f", error {pictures.error(stack, sample):.2f}"
    flat = stack.max(axis=1)
    flat = np.clip(flat / np.quantile(flat, 0.999, axis=(1, 2), keepdims=True), 0, 1)
    ax = figure.axes(title + wrong)
    ax.imshow(np.stack([flat[0], flat[1], np.zeros((NY, NX))], axis=-1))
    ax.set(xticks=[], yticks=[])
along = np.concatenate([volume[1].max(axis=1) for volume in (seen, found)])
figure.image("vesicles from the side, seen and found", along, labels=("x", "z"), low=0, high=1)
figure.memory(runs[0], "solve of one channel")
figure.save("microscopy.png")
