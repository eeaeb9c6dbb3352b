# SPDX-License-Identifier: Apache-2.0
"""Parallel imaging of a measured head on a byte budget: eight coils, a quarter of k-space.

The plan of the solve is known before it runs. Given a smaller budget, the operator is cut along the
coils until the plan fits; the image is the same.
"""

# %% The head: an axial slice, or a phantom where the file is not installed
import os

import numpy as np
import pictures

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
whole = ps.plan(ps.cg, A.N, b)
smallest = ps.smallest_budget(ps.cg, A.N, b)
cut = ps.plan(ps.cg, A.N, b, budget=smallest)
print(f"whole: {whole.peak_bytes} bytes; smallest budget {smallest}: {cut.peak_bytes} bytes in {cut.tiles} tiles")

# %% Both solves, with their measured memory
images = []
for plan, budget in ((whole, None), (cut, smallest)):
    with ps.MemoryScope() as memory:
        images.append(ps.conjugate_gradients(A.N, b, max_iterations=30, tolerance=0, budget=budget).x)
    assert memory.peak_bytes == plan.peak_bytes
print(f"difference of the images {np.abs(images[0] - images[1]).max():.1e}")

# %% Plot: the images, and the memory of one iteration without and with the budget
figure = pictures.Figure(5, width=2.6, height=3.1)
for title, shown in {"head": head, "zeros": b, "CG-SENSE": images[1]}.items():
    wrong = "" if shown is head else f", error {pictures.error(np.abs(shown), np.abs(head)):.3f}"
    figure.image(title + wrong, np.abs(shown), low=0, high=1)
for title, plan in {"whole": whole, f"{cut.tiles} tiles": cut}.items():
    plan.step.plot(ax=figure.axes("")).set_title(f"one iteration, {title}", pad=14)
figure.note(f"announced and measured: {whole.peak_bytes:,} bytes; {cut.peak_bytes:,} bytes with the smallest budget")
figure.save("sense_on_a_budget.png")
