# SPDX-License-Identifier: Apache-2.0
"""Two views of a light-sheet microscope: each is blurred along its own axis, together they are sharp.

A view is sharp across its axis of sight and blurred along it. The second view looks from the side; the model stacks both
along a dimension V, and one volume must explain them.
"""

# %% A hollow ball with grains in it, and the blur of each view
from typing import Any

import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N = 48
z, y, x = np.mgrid[0:N, 0:N, 0:N] - N // 2
radius = np.sqrt(x**2 + y**2 + z**2)
rng = np.random.default_rng(0)
ball = np.where(abs(radius - 17) < 1.2, 1.0, 0.0)
for cz, cy, cx in rng.uniform(-9, 9, (14, 3)):
    ball[(z - cz) ** 2 + (y - cy) ** 2 + (x - cx) ** 2 < 5] = 1


def spectrum(along: int) -> NDArray[np.complex128]:
    """Of a Gaussian that is four times as long along one axis."""
    d = [np.minimum(np.arange(N), N - np.arange(N)) / (4.0 if axis == along else 1.0) for axis in range(3)]
    shape = np.exp(-0.5 * (d[0][:, None, None] ** 2 + d[1][:, None] ** 2 + d[2] ** 2))
    return np.asarray(np.fft.fftn(shape / shape.sum()))


F = ps.Fft(3, batch=(), grid=("Nz Ny Nx", "Kz Ky Kx"))
back = ps.Fft(3, batch="V", grid=("Nz Ny Nx", "Kz Ky Kx")).H
A = F | ps.Dense(np.stack([spectrum(0), spectrum(2)]), "V Kz Ky Kx, Kz Ky Kx -> V Kz Ky Kx") | back
views = A(ball.astype(complex))
views = views + 0.01 * rng.standard_normal(views.shape)

# %% One view alone, both together
options: dict[str, Any] = {"max_iterations": 80, "tolerance": 0.0}
alone = ps.fista(A.split({"V": slice(0, 1)}), ps.NonNegative(), views[:1], **options).x.real
found = pictures.run(ps.fista, A, ps.NonNegative(), views, **options)
both = found.result.x.real

# %% Plot: the section y = 0
figure = pictures.Figure(5, width=2.4)
middle = N // 2
figure.image("sample", ball[:, middle], low=0, high=1, labels=("x", "z"))
figure.image("view along z", views[0].real[:, middle])
figure.image("view along x", views[1].real[:, middle])
for title, shown in {"one view": alone, "both": both}.items():
    figure.image(f"{title}, error {pictures.error(shown, ball):.2f}", shown[:, middle], low=0, high=1)
figure.memory(found)
figure.save("two_views.png")
