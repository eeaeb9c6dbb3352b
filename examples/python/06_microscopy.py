# SPDX-License-Identifier: Apache-2.0
"""Microscopy: a stack in three channels is deconvolved, split by name until it fits into memory.

Each channel has a blur of its own, wider at longer wavelengths. The operator is cut along the channels:
each part solves for itself, and together they are what the whole gives.
"""

# %% The sample: beads in a volume, and a blur for each channel
import matplotlib.pyplot as plt
import numpy as np

import palimpsest as ps

C, NZ, NY, NX = 3, 24, 64, 64
rng = np.random.default_rng(0)
beads = np.zeros((C, NZ, NY, NX))
for channel in range(C):
    z, y, x = (rng.integers(4, n - 4, 40) for n in (NZ, NY, NX))
    beads[channel, z, y, x] = rng.uniform(0.5, 1.0, 40)


def blur(channel):
    """A Gaussian on the whole grid, centred at index 0, three times as long as wide."""
    z, y, x = (np.minimum(np.arange(n), n - np.arange(n)) for n in (NZ, NY, NX))
    width = 1.2 + 0.5 * channel
    shape = np.exp(-0.5 * ((z[:, None, None] / (2 * width))**2 + (y[:, None] / width)**2 + (x / width)**2))
    return shape / shape.sum()


spectra = np.stack([np.fft.fftn(blur(c)) for c in range(C)])
F = ps.Fft(3, batch="C", grid=("Nz Ny Nx", "Kz Ky Kx"))
A = F | ps.Diagonal(spectra, "C Kz Ky Kx") | F.H
seen = A(beads.astype(complex)).real
seen += 0.002 * seen.max() * rng.standard_normal(seen.shape)

# %% The budget: the whole stack, or one channel at a time
h, options = ps.NonNegative(), {"max_iterations": 80, "tolerance": 0}
data = seen.astype(complex)
whole = ps.plan_fista(A, h, data, **options)
part = A.split({"C": slice(0, 1)})
one = ps.plan_fista(part, h, data[:1], **options)
print(f"peak: whole {whole.peak_bytes / 1e6:.1f} MB, a channel at a time {one.peak_bytes / 1e6:.1f} MB")
found = np.concatenate([
    ps.fista(A.split({"C": slice(c, c + 1)}), h, data[c:c + 1], **options).x for c in range(C)
]).real

# %% Plot: maxima along z, channels as colours
figure, axes = plt.subplots(1, 3, figsize=(8.5, 3), constrained_layout=True)
for ax, (title, stack) in zip(axes, {"beads": beads, "seen": seen, "found": found}.items()):
    flat = stack.max(axis=1)
    ax.imshow(np.moveaxis(np.clip(flat / flat.max(axis=(1, 2), keepdims=True), 0, 1), 0, -1))
    ax.set(title=title, xticks=[], yticks=[])
figure.savefig("microscopy.png", dpi=90)
