# SPDX-License-Identifier: Apache-2.0
"""Echo-planar imaging: every second line is measured backwards, and a phase between the directions makes a ghost.

Two navigator lines without phase encoding, one in each direction, tell that phase; taking it out of the reversed lines
removes the ghost.
"""

# %% K-space with reversed lines that lag behind
from typing import Any

import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N, COILS = 128, 4
head = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype("complex64")
maps = ps.ring_coil_maps(COILS, N, N)
lag = np.exp(1j * (0.35 + 0.02 * (np.arange(N) - N // 2))).astype("complex64")  # phase along x
is_reversed = np.arange(N) % 2 == 1


def measured(images: NDArray[Any], seed: int) -> NDArray[Any]:
    """K-space along y and x of images, the phase on its reversed lines, noise."""
    rng = np.random.default_rng(seed)
    plain = ps.transform(images.astype("complex64"), [1, 2])
    lagging = ps.transform((images * lag).astype("complex64"), [1, 2])
    noise = rng.standard_normal((2, *plain.shape)).astype("float32") * 0.002
    return np.asarray(np.where(is_reversed[:, None], lagging, plain) + noise[0] + 1j * noise[1])


kspace = measured(maps * head, 0).astype("complex64")

# %% Navigators: the sum over y, in both directions
profile = (maps * head).sum(axis=1) / np.sqrt(N)
forward = ps.transform(profile.astype("complex64"), [1])
reversed_ = ps.transform((profile * lag).astype("complex64"), [1])
constant, slope = ps.echo_phase(forward, reversed_)
print(f"phase of reversed echoes: {constant:.3f} + {slope:.4f} x")
aligned = ps.aligned_echoes(kspace, is_reversed, forward, reversed_)

# %% Images of all coils
images = {title: ps.rss_image(ps.coil_images(k)) for title, k in {"as measured": kspace, "aligned": aligned}.items()}
truth = ps.rss_image((maps * head).astype("complex64"))

# %% Plot
figure = pictures.Figure(4)
figure.image("head", truth, low=0, high=truth.max())
for title, found in images.items():
    figure.image(f"{title}, error {pictures.error(found, truth):.3f}", found, low=0, high=truth.max())
figure.image("error of aligned", images["aligned"] - truth, colors="RdBu", low=-0.02, high=0.02)
figure.note(f"phase of reversed echoes, from two navigators: {constant:.3f} + {slope:.4f} x, set to 0.350 + 0.0200 x")
figure.save("epi_ghosts.png")
