# SPDX-License-Identifier: Apache-2.0
"""Learned weights: torch trains a Diagonal inside an unrolled solver.

Eight steps x <- x - D A^H (A x - b) deblur a signal. D is a Diagonal in the Fourier domain whose weights are a
torch parameter: gradients run through the operators, which are compiled once.
"""

# %% The blur, and training signals
import matplotlib.pyplot as plt
import numpy as np
import torch

import palimpsest as ps

N, STEPS = 128, 8
torch.manual_seed(0)
kernel = np.exp(-0.5 * (np.arange(-8, 9) / 2.5) ** 2)
A = ps.Convolution(kernel / kernel.sum(), batch="B", grid="N", out="N", boundary="circular")
F = ps.Fft(1, batch="B", grid=("N", "K"), norm="ortho")


def signals(n):
    """Steps of random heights at random places."""
    jumps = (torch.rand(n, N) < 0.05).double() * torch.randn(n, N, dtype=torch.double)
    return jumps.cumsum(dim=1) - jumps.cumsum(dim=1).mean(dim=1, keepdim=True)


def blurred(x):
    return A(x) + 0.02 * torch.randn(x.shape, dtype=torch.double)


# %% The network: a weight for each frequency, the same in all steps
weights = torch.nn.Parameter(torch.full((N,), 1.0, dtype=torch.cdouble))
D = F | ps.Diagonal(weights, "B K", weight_shape="K") | F.H


def solve(b):
    x = torch.zeros_like(b)
    for _ in range(STEPS):
        x = x - D((A.H(A(x) - b)).to(torch.cdouble)).real
    return x


def error(x, truth):
    return float(torch.linalg.norm(x.detach() - truth) / torch.linalg.norm(truth))


truth = signals(32)
data = blurred(truth)
before = solve(data).detach()
optimizer = torch.optim.Adam([weights], lr=0.1)
losses = []
for _ in range(60):
    optimizer.zero_grad()
    batch = signals(16)
    loss = ((solve(blurred(batch)) - batch) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(float(loss.detach()))
after = solve(data).detach()
print(f"error: seen {error(data, truth):.3f}, steps of 1 {error(before, truth):.3f}, learned {error(after, truth):.3f}")

# %% Plot
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), constrained_layout=True)
axes[0].semilogy(losses)
axes[0].set(title="loss", xlabel="step of Adam")
axes[1].plot(np.fft.fftshift(np.abs(weights.detach().numpy())))
axes[1].set(title="learned weights", xlabel="frequency")
for name, x in {"truth": truth, "seen": data, "learned": after}.items():
    axes[2].plot(x[0], label=name, linewidth=1)
axes[2].legend(fontsize=7)
figure.savefig("learned_weights.png", dpi=90)
