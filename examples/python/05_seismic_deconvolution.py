# SPDX-License-Identifier: Apache-2.0
"""Seismic deconvolution: spikes of reflectivity from traces, with an operator of PyLops and labels of xarray.

The source wavelet is a Convolve1D of PyLops, imported as a named operator. Traces are a DataArray; so is what
comes back, with the coordinates of the traces.
"""

# %% Layers, and the traces that a survey records
import numpy as np
import pictures
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
found = pictures.run(ps.fista, W, ps.L1(0.05), traces, max_iterations=300)
spikes = found.result.x
print(found.result.status, type(spikes).__name__, spikes.dims)
energy = float((spikes**2).sum())
hit = float((spikes.values[layers != 0] ** 2).sum()) / energy
print(f"energy on the layers: {hit:.2f} of what was found")

# %% The same with labels: a shallow part, selected by its times
shallow = spikes.sel(T=slice(0.1, 0.4))
print("samples between 0.1 s and 0.4 s:", shallow.sizes["T"])

# %% Plot
figure = pictures.Figure(3, width=3.2)
titles = {"layers": layers, "traces": traces, f"found, error {pictures.error(spikes.values, layers):.2f}": spikes}
for title, shown in titles.items():
    figure.image(title, np.asarray(shown).T, colors="RdBu", low=-1, high=1, aspect="auto",
                 extent=(0, float(x[-1]) * 10, float(t[-1]), 0), labels=("distance in m", "time in s"))
figure.memory(found)
figure.save("seismic_deconvolution.png")
