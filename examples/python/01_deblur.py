# SPDX-License-Identifier: Apache-2.0
"""Deblurring: an image seen through a defocused lens, with noise, and its deconvolution.

The lens is a Convolution whose kernel is a disc; conjugate gradients solve the regularized normal
equations. The picture shows what was seen, what was found, and the residual of each iteration.
"""

# %% The object and the lens
import matplotlib.pyplot as plt
import numpy as np

import palimpsest as ps

image = ps.ellipse_image(ps.modified_shepp_logan(), 192, 192).astype(float)
y, x = np.mgrid[-7:8, -7:8]
disc = (x**2 + y**2 <= 6.5**2).astype(float)
lens = ps.Convolution(disc / disc.sum(), batch=(), grid="Ny Nx", out="Ny Nx")

# %% The camera image: blurred, with noise of standard deviation 0.002
rng = np.random.default_rng(0)
seen = lens(image) + 0.002 * rng.standard_normal(image.shape)

# %% The minimizer of |A x - b|^2 + 3e-4 |grad x|^2
gradient = ps.Gradient("Ny Nx", "Ny Nx", boundary="neumann")
A = lens.N + 3e-4 * gradient.N
result = ps.conjugate_gradients(A, lens.H(seen), max_iterations=200, tolerance=1e-4)
print(result)


def error(found):
    return np.linalg.norm(found - image) / np.linalg.norm(image)


print(f"error of what was seen {error(seen):.3f}, of what was found {error(result.x):.3f}")

# %% Plot
figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), constrained_layout=True)
for ax, (title, shown) in zip(axes, {"object": image, "seen": seen, "found": result.x}.items()):
    ax.imshow(shown, cmap="gray", vmin=0, vmax=0.6)
    ax.set(title=title, xticks=[], yticks=[])
result.history.plot(ax=axes[3])
figure.savefig("deblur.png", dpi=90)
