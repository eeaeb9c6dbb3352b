# SPDX-License-Identifier: Apache-2.0
"""A film as the sum of its background and of what moves in front of it.

Frames of a fixed scene whose light changes are a matrix of low rank; what moves covers few pixels. Two parts of one
unknown have a proximal function each: the nuclear norm and the sum of magnitudes.
"""

# %% The film: a scene under changing light, a disc that crosses it, noise
import numpy as np
import pictures

import palimpsest as ps

T, N = 30, 64
rng = np.random.default_rng(0)
scene = np.kron(rng.random((8, 8)), np.ones((8, 8))) * 0.6 + 0.2
light = 1 + 0.2 * np.sin(np.arange(T) / 4)
y, x = np.mgrid[0:N, 0:N]
disc = np.stack([(y - 20 - t * 0.6) ** 2 + (x - 8 - t * 1.6) ** 2 < 36 for t in range(T)])
background = light[:, None, None] * scene
film = np.where(disc, 1.3, background) + 0.02 * rng.standard_normal((T, N, N))

# %% The parts: P = 0 of low rank, P = 1 sparse; their sum is the film
identity = ps.Identity("T Ny Nx")
A = ps.Stack(identity, identity, in_=("P", 0))
dims = "P T Ny Nx"
parts = ps.Prox.stacked([ps.Nuclear(1.5, "Ny Nx", "T", dims=dims), ps.L1(0.035)], "P", [1, 1], dims)
found = pictures.run(ps.fista, A, parts, film, max_iterations=300, L=2.0, tolerance=1e-5)
low_rank, sparse = found.result.x

# %% Plot: one frame
frame = 14
found_disc = np.abs(sparse[frame]) > 0.15
right, wrong = found_disc[disc[frame]].mean(), found_disc[~disc[frame]].mean()
print(f"pixels of the disc found: {right:.2f}, others taken for it: {wrong:.3f}")
figure = pictures.Figure(4)
figure.image(f"frame {frame} of the film", film[frame], low=0, high=1.4)
error = pictures.error(low_rank[frame], background[frame])
figure.image(f"low rank, error {error:.3f}", low_rank[frame], low=0, high=1.4)
figure.image("sparse", sparse[frame], low=-1, high=1, colors="RdBu")
figure.curves("singular values", {"film": np.linalg.svd(film.reshape(T, -1), compute_uv=False),
                                  "low rank": np.linalg.svd(low_rank.reshape(T, -1), compute_uv=False)},
              labels=("number", "value")).set_yscale("log")
figure.memory(found)
figure.save("background.png")
