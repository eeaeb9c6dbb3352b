# SPDX-License-Identifier: Apache-2.0
"""Acoustic impedance from stacked traces: the band that the source lacks comes from a start and from sharp layers.

A trace is the source wavelet over half the derivative of the logarithm of impedance. Its inversion lacks the lowest
frequencies; a smooth start gives them, and total variation makes layers of it. The model is synthetic.
"""

# %% Layers with a fault, and their traces
from typing import Any

import numpy as np
import pictures

import palimpsest as ps

N_X, N_T, DT = 80, 160, 0.004
x, t = np.arange(N_X), np.arange(N_T) * DT
rng = np.random.default_rng(1)
edges = np.sort(rng.integers(12, N_T - 8, 9))
values = 8.2 + np.cumsum(rng.normal(0.05, 0.13, 10))
model = np.empty((N_X, N_T))
for i in range(N_X):
    throw = 9 if i > 45 else 0
    model[i] = values[np.searchsorted(edges + throw + np.round(4 * np.sin(i / 18)), np.arange(N_T), side="right")]

tau = (np.arange(31) - 15) * DT
ricker = (1 - 2 * (np.pi * 22 * tau) ** 2) * np.exp(-((np.pi * 22 * tau) ** 2))
derivative = 0.5 * ps.FiniteDifference("X T", "T", boundary="neumann")
A = derivative | ps.Convolution(ricker, batch="X", grid="T", out="T")
traces = A(model) + 0.01 * rng.standard_normal(model.shape)

# %% The start: a heavily smoothed model, as from a well and stacking velocities
width = np.exp(-0.5 * (np.arange(-60, 61) / 20) ** 2)
smooth = np.stack([np.convolve(np.pad(m, 60, mode="edge"), width / width.sum(), mode="valid") for m in model])
start = np.stack([np.convolve(np.pad(m, 10, mode="edge"), np.ones(21) / 21, mode="valid") for m in smooth.T]).T

# %% Near the start, and near the start with sharp layers
near = ps.Quadratic(0.002, c=start)
squares = ps.minimize(ps.Objective(A, quadratics=[near]), traces, max_iterations=200).x
objective = ps.Objective(A, quadratics=[near], terms=[ps.tv_term(0.01, "X T", isotropic=False)])
found = pictures.run(ps.minimize, objective, traces, max_iterations=600, x0=start)

# %% Plot: kilograms per square metre and second
figure = pictures.Figure(5, width=2.5)
place: dict[str, Any] = {"aspect": "auto", "labels": ("distance in m", "time in s")}
place["extent"] = (0, N_X * 12.5, float(t[-1]), 0)
figure.image("traces", traces.T, colors="RdBu", low=-0.1, high=0.1, **place)
impedance = {"true": model, "start": start, "least squares": squares, "total variation": found.result.x}
for title, shown in impedance.items():
    wrong = f", error {pictures.error(np.exp(shown), np.exp(model)):.3f}" if title != "true" else ""
    figure.image(title + wrong, np.exp(shown.T) / 1000, colors="viridis", low=3, high=7.5, **place)
figure.memory(found)
figure.save("impedance.png")
