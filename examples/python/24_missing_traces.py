# SPDX-License-Identifier: Apache-2.0
"""Missing traces: half of the receivers are dead, and their traces come from the others.

Events are lines in distance and time, so few of their Fourier coefficients are large. The unknown is the spectrum; its
sum of magnitudes, and the traces that were recorded, give the rest. The events are synthetic.
"""

# %% Linear and curved events, and the receivers that work
from typing import Any

import numpy as np
import pictures
from numpy.typing import NDArray

import palimpsest as ps

N_X, N_T, DT = 96, 192, 0.004
x, t = np.arange(N_X) * 10.0, np.arange(N_T) * DT


def wavelet(when: NDArray[Any]) -> NDArray[Any]:
    a = (np.pi * 25 * when) ** 2
    return np.asarray((1 - 2 * a) * np.exp(-a))


events = [(0.12, 1 / 3000, 1.0), (0.30, 1 / 5200, -0.8), (0.45, -1 / 6000, 0.7)]
full = np.sum([s * wavelet(t[None] - t0 - p * x[:, None]) for t0, p, s in events], axis=0)
full = full + 0.9 * wavelet(t[None] - np.sqrt(0.35**2 + (x[:, None] / 2400) ** 2))
rng = np.random.default_rng(2)
alive = rng.random(N_X) < 0.5
mask = np.repeat(alive[:, None], N_T, axis=1)

# %% From a spectrum to the recorded traces
F = ps.Fft(2, batch=(), grid=("X T", "Kx F"))
A = F.H | ps.Diagonal(mask.astype(complex), "X T")
recorded = (full + 0.02 * rng.standard_normal(full.shape)) * mask
found = pictures.run(ps.fista, A, ps.L1(0.03), recorded.astype(complex), max_iterations=300, L=1.0, tolerance=0)
filled = F.H(found.result.x).real

# %% Plot: traces, and the magnitudes of the spectrum
figure = pictures.Figure(4)
place: dict[str, Any] = {"aspect": "auto", "labels": ("distance in m", "time in s")}
place["extent"] = (0, float(x[-1]), float(t[-1]), 0)
for title, shown in {"all traces": full, "recorded": recorded, "filled": filled}.items():
    wrong = f", error {pictures.error(shown, full):.3f}" if title != "all traces" else ""
    figure.image(title + wrong, shown.T, colors="RdBu", low=-1, high=1, **place)
spectrum = np.fft.fftshift(np.abs(found.result.x), axes=0)[:, :N_T // 2]
figure.image("spectrum that was found", spectrum.T, colors="magma", aspect="auto", origin="lower", low=0, high=3,
             extent=(-0.05, 0.05, 0, 0.5 / DT), labels=("cycles per m", "Hz"))
figure.memory(found)
figure.save("missing_traces.png")
