# SPDX-License-Identifier: Apache-2.0
"""Seismic deconvolution: spikes of reflectivity from traces, with an operator of PyLops and labels of xarray.

The source wavelet is a Convolve1D of PyLops, imported as a named operator. Traces are a DataArray; so is what
comes back, with the coordinates of the traces.
"""

# %% Layers, and the traces that a survey records
import matplotlib.pyplot as plt
import numpy as np
import pylops
import xarray as xr

import palimpsest as ps

N_X, N_T, DT = 40, 200, 0.004
rng = np.random.default_rng(0)
x, t = np.arange(N_X), np.arange(N_T) * DT
layers = np.zeros((N_X, N_T))
for depth, dip, strength in ((40, 0.3, 1.0), (80, -0.5, -0.7), (100, -0.5, 0.6), (150, 0.2, 0.8)):
    layers[x, np.round(depth + dip * x).astype(int)] = strength

wavelet, _, center = pylops.utils.wavelets.ricker(t[:21], f0=20)
W = ps.from_pylops(pylops.signalprocessing.Convolve1D((N_X, N_T), wavelet, offset=center, axis=1), "X T", "X T")
recorded = W(layers) + 0.02 * rng.standard_normal(layers.shape)
traces = xr.DataArray(recorded, dims=("X", "T"), coords={"X": x * 10.0, "T": t}, attrs={"units": "m/s"})

# %% Sparse reflectivity: |W r - d|^2 / 2 + 0.05 |r|
found = ps.fista(W, ps.L1(0.05), traces, max_iterations=300)
print(found.status, type(found.x).__name__, found.x.dims)
energy = float((found.x**2).sum())
hit = float((found.x.values[layers != 0] ** 2).sum()) / energy
print(f"energy on the layers: {hit:.2f} of what was found")

# %% The same with labels: a shallow part, selected by its times
shallow = found.x.sel(T=slice(0.1, 0.4))
print("samples between 0.1 s and 0.4 s:", shallow.sizes["T"])

# %% Plot
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), constrained_layout=True)
for ax, (title, shown) in zip(axes, {"layers": layers, "traces": traces, "found": found.x}.items()):
    ax.imshow(np.asarray(shown).T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto", extent=(0, x[-1] * 10, t[-1], 0))
    ax.set(title=title, xlabel="m")
axes[0].set_ylabel("s")
figure.savefig("seismic_deconvolution.png", dpi=90)
