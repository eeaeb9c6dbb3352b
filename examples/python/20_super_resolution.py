# SPDX-License-Identifier: Apache-2.0
"""Super-resolution: twelve small frames, each shifted by a part of a pixel, make one large image.

A frame is the image shifted, averaged over the pixels of the camera, and kept at every third place. Together the frames
sample it densely enough to undo the averaging.
"""

# %% The object and the camera
import numpy as np
import pictures

import palimpsest as ps

N, STEP, FRAMES = 120, 3, 12
y, x = np.mgrid[0:N, 0:N]
rings = 0.5 + 0.5 * np.cos(0.0016 * ((x - 20) ** 2 + (y - 100) ** 2))
letters = np.zeros((N, N))
for top, left in ((18, 60), (18, 78), (18, 96), (40, 60), (40, 78)):
    letters[top:top + 14, left:left + 3] = letters[top:top + 3, left:left + 12] = 1
    letters[top + 7:top + 9, left:left + 9] = 1
image = np.where((x > 52) & (y < 62), letters, rings)

rng = np.random.default_rng(1)
shifts = rng.uniform(0, STEP, (FRAMES, 2))
ky, kx = np.meshgrid(np.fft.fftfreq(N), np.fft.fftfreq(N), indexing="ij")
pixel = np.fft.fft2(np.pad(np.full((STEP, STEP), 1 / STEP**2), ((0, N - STEP), (0, N - STEP))))
filters = np.stack([pixel * np.exp(2j * np.pi * (ky * dy + kx * dx)) for dy, dx in shifts])

# %% The model: P counts the frames
F = ps.Fft(2, batch=(), grid=("Ny Nx", "Ky Kx"))
back = ps.Fft(2, batch="P", grid=("Ny Nx", "Ky Kx")).H
kept = np.zeros((N, N), bool)
kept[::STEP, ::STEP] = True
A = (F | ps.Dense(filters, "P Ky Kx, Ky Kx -> P Ky Kx") | back
     | ps.SamplingFromMask(kept, input="Ny Nx", output="S", batch="P") | ps.RealPart("P S"))
frames = A(image.astype(complex))
frames = frames + 0.01 * rng.standard_normal(frames.shape)

# %% One frame enlarged, and all frames with total variation
first = np.kron(frames[0].real.reshape(N // STEP, -1), np.ones((STEP, STEP)))
objective = ps.Objective(A, terms=[ps.tv_term(0.004, "Ny Nx")], h=ps.NonNegative())
found = pictures.run(ps.minimize, objective, frames, max_iterations=300)
large = found.result.x.real

# %% Plot
figure = pictures.Figure(3, width=3.3, height=3.3)
figure.image("object, 120 x 120", image, low=0, high=1)
figure.image(f"a frame, 40 x 40, error {pictures.error(first, image):.3f}", first, low=0, high=1)
figure.image(f"twelve frames, error {pictures.error(large, image):.3f}", large, low=0, high=1)
figure.memory(found)
figure.save("super_resolution.png")
