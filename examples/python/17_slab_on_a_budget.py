# SPDX-License-Identifier: Apache-2.0
"""A volume on a byte budget: the plan before the run, the smallest budget, the same volume within it.

A stack of slices is solved at once. Under a budget the operator is cut along the slices until the plan fits; the images
are the same, and the measured peak is the announced one to the byte. The last picture shows where buffers lie in memory
and when their bytes are used again.
"""

# %% The volume and its projections
import numpy as np
import pictures

import palimpsest as ps

NZ, N, VIEWS = 24, 64, 48
radii = 0.75 * np.sqrt(1 - (np.arange(NZ) / NZ - 0.5) ** 2 * 3.6)
shapes = [[ps.Ellipse(0.6, r, 0.8 * r), ps.Ellipse(0.4, 0.2, 0.15, 0.3 * r, 0.1),
           ps.Ellipse(-0.4, 0.1, 0.25, -0.25, -0.2 * r)]
          for r in radii.tolist()]
volume = np.stack([ps.ellipse_image(slice_, N, N) for slice_ in shapes]).astype("float32")
angles = (np.arange(VIEWS) * np.pi / VIEWS).astype("float32")
A = ps.Radon(angles, (N, N), n_detectors=N + 28, batch="Nz")
rng = np.random.default_rng(0)
data = A(volume)
data = (data + 0.01 * data.max() * rng.standard_normal(data.shape)).astype("float32")
gradient = ps.Gradient("Nz Ny Nx", "Nz Ny Nx", boundary="neumann")
normal = A.N + 4.0 * gradient.N
b = A.H(data)

# %% Ask first, then run: without a budget, and with the smallest one
options = {"max_iterations": 20, "tolerance": 0.0}
least = ps.smallest_budget(ps.cg, normal, b, **options)
whole = pictures.run(ps.cg, normal, b, **options)
cut = pictures.run(ps.cg, normal, b, budget=least, **options)
plan = ps.plan(ps.cg, normal, b, budget=least, **options)
print(f"smallest budget {least:,} bytes: {plan.tiles} tiles of {plan.sizes}")
print(f"difference of the volumes {pictures.error(cut.result.x, whole.result.x):.1e}")

# %% Plot: slices, and the arena of one iteration without and with the budget
figure = pictures.Figure(4, width=3.2, height=3.4)
figure.image("slice 12", volume[12], low=0, high=1)
figure.image(f"found, error {pictures.error(cut.result.x, volume):.3f}", cut.result.x[12], low=0, high=1)
for title, of in {"without a budget": ps.plan(ps.cg, normal, b, **options), f"in {plan.tiles} tiles": plan}.items():
    ax = figure.axes(title)
    of.step.plot(ax=ax).set_title(f"one iteration {title}", pad=14)
figure.note(f"announced and measured: {whole.announced:,} and {whole.measured:,} bytes without a budget, "
            f"{cut.announced:,} and {cut.measured:,} with the smallest")
figure.save("slab_on_a_budget.png")
