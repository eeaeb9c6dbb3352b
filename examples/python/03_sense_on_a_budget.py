# SPDX-License-Identifier: Apache-2.0
"""Parallel imaging of a measured head on a byte budget: eight coils, a quarter of k-space.

The plan of the solve is known before it runs. Given a smaller budget, the operator is cut along the
coils until the plan fits; the image is the same.
"""

# %% The head: an axial slice, or a phantom where the file is not installed
import os

import matplotlib.pyplot as plt
import numpy as np

import palimpsest as ps

PATH = os.environ.get("PALIMPSEST_HEAD", "/usr/share/mricron/templates/ch2.nii.gz")
if os.path.exists(PATH):
    head = np.asarray(ps.read_nifti(PATH).data[80], dtype="complex64")[::-1]
else:
    head = ps.ellipse_image(ps.modified_shepp_logan(), 216, 180).astype("complex64")
head = np.ascontiguousarray(head / np.abs(head).max())

# %% The scan
ny, nx = head.shape
true_maps = ps.ring_coil_maps(8, ny, nx)
mask = ps.sampling_pattern(ny, nx, acceleration=4, center=24, seed=1)
kspace = ps.sense_model(true_maps, mask=mask)(head)
rng = np.random.default_rng(1)
noise = rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape)
kspace = (kspace + 0.002 * noise * mask).astype("complex64")

# %% Sensitivities from the middle of k-space, and the model of what the coils measure
maps = ps.espirit(kspace).maps[0]
C = ps.Dense(maps, "C Ny Nx, Ny Nx -> C Ny Nx")
F = ps.Fft(2, batch="C", grid=("Ny Nx", "Ky Kx"), centered=True)
A = C | F | ps.Diagonal(mask.astype("complex64"), "C Ky Kx", weight_shape="Ky Kx")
b = A.H(kspace)
whole = ps.plan_conjugate_gradients(A.N, b)
smallest = ps.smallest_cg_budget(A.N, b)
cut = ps.plan_conjugate_gradients(A.N, b, budget=smallest)
print(f"whole: {whole.peak_bytes} bytes; smallest budget {smallest}: {cut.peak_bytes} bytes in {cut.tiles} tiles")

# %% Both solves, with their measured memory
images = []
for plan, budget in ((whole, None), (cut, smallest)):
    with ps.MemoryScope() as memory:
        images.append(ps.conjugate_gradients(A.N, b, max_iterations=30, tolerance=0, budget=budget).x)
    assert memory.peak_bytes == plan.peak_bytes
print(f"difference of the images {np.abs(images[0] - images[1]).max():.1e}")

# %% Plots: the images, and the plans of one iteration
figure, axes = plt.subplots(1, 3, figsize=(8, 3), constrained_layout=True)
for ax, (title, shown) in zip(axes, {"head": head, "zeros": b, "CG-SENSE": images[1]}.items()):
    ax.imshow(np.abs(shown), cmap="gray")
    ax.set(title=title, xticks=[], yticks=[])
figure.savefig("sense_on_a_budget.png", dpi=90)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
whole.step.plot(ax=axes[0])
cut.step.plot(ax=axes[1])
figure.savefig("sense_plans.png", dpi=90)
