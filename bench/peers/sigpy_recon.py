#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SigPy's SenseRecon, L1WaveletRecon, TotalVariationRecon and EspiritCalib beside Palimpsest.

Both get the same k-space and maps. Each case runs by turns, and the least processor time of each is
printed as Markdown, with the relative difference of the images after one phase factor:

    bench/peers/sigpy_recon.py [--kspace FILE.npy] [--repeat 3]

Without a file: a phantom of 192 x 160 points, 8 coils, 4-fold Poisson. Environment: that of
bench/peers/run_all, which has sigpy and palimpsest; OMP_NUM_THREADS and PALIMPSEST_FLAGS=threads=N
set the threads of both.
"""

import argparse
import time

import numpy as np
import palimpsest as ps
import sigpy as sp
from sigpy.mri import app

LAMBDA = 0.01


def phantom():
    ny, nx = 192, 160
    maps = np.asarray(ps.ring_coil_maps(8, ny, nx))
    image = np.asarray(ps.ellipse_image(ps.modified_shepp_logan(), ny, nx)).astype(np.complex64)
    mask = np.asarray(ps.sampling_pattern(ny, nx, acceleration=4, center=24, seed=1))
    kspace = np.array(ps.sense_model(maps, mask=mask)(image))
    random = np.random.default_rng(1)
    noise = random.standard_normal((2, *kspace.shape)) * 0.005
    return (kspace + (noise[0] + 1j * noise[1]) * mask).astype(np.complex64)


def difference(a, b):
    """|a c - b| / |b| for the best complex factor c of magnitude 1."""
    a, b = np.asarray(a).ravel(), np.asarray(b).ravel()
    inner = np.vdot(a, b)
    return np.linalg.norm(a * inner / max(abs(inner), 1e-30) - b) / np.linalg.norm(b)


def timed(contestants, repeat):
    """Results and least processor seconds, by turns."""
    results, least = [None] * len(contestants), [np.inf] * len(contestants)
    for _ in range(repeat):
        for i, run in enumerate(contestants):
            start = time.process_time()
            results[i] = run()
            least[i] = min(least[i], time.process_time() - start)
    return results, least


def differences():
    """The norm of TotalVariationRecon: backward differences around the edges, not isotropic."""
    return f"tv:{LAMBDA},iso=0,direction=backward,boundary=periodic"


def cases(kspace, maps):
    # Scales data so that images have the brightness for which the weights below are chosen.
    unit = kspace / np.abs(np.fft.ifftn(kspace, norm="ortho", axes=(1, 2))).max()

    def palimpsest(regularizer, iterations, method="automatic"):
        return ps.reconstruct(unit, maps, regularizers=regularizer, max_iterations=iterations,
                              scale=1.0, method=method, tolerance=0).image

    quiet = {"show_pbar": False}
    yield ("SenseRecon, 30 iterations",
           lambda: app.SenseRecon(unit, maps, lamda=LAMBDA, max_iter=30, **quiet).run(),
           lambda: palimpsest(f"l2:{LAMBDA}", 30))
    yield ("L1WaveletRecon, db4, 100 iterations",
           lambda: app.L1WaveletRecon(unit, maps, LAMBDA / 10, max_iter=100, alpha=1.0, **quiet).run(),
           lambda: palimpsest(f"l1wav:{LAMBDA / 10},wavelet=db4,shift=none", 100))
    yield ("TotalVariationRecon, 500 iterations",
           lambda: app.TotalVariationRecon(unit, maps, LAMBDA, max_iter=500, **quiet).run(),
           lambda: palimpsest(differences(), 500))


def espirit_case(kspace):
    # SigPy keeps singular vectors above 0.02 of the largest, Palimpsest above sqrt(threshold).
    return ("EspiritCalib",
            lambda: app.EspiritCalib(kspace, thresh=0.02, crop=0.8, show_pbar=False).run(),
            lambda: ps.espirit(kspace, threshold=0.02**2, crop=0.8).maps[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kspace", help="complex array (coil, y, x), 0 where nothing was measured")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    kspace = np.load(arguments.kspace) if arguments.kspace else phantom()
    maps = np.array(ps.espirit(kspace).maps[0])
    print(f"SigPy {sp.__version__}, {kspace.shape[0]} coils, {kspace.shape[1]} x {kspace.shape[2]}\n")
    print("| case | difference | SigPy, s | Palimpsest, s | ratio |\n|---|---|---|---|---|")
    for name, theirs, ours in [espirit_case(kspace), *cases(kspace, maps)]:
        (a, b), (their_s, our_s) = timed([theirs, ours], arguments.repeat)
        if name == "EspiritCalib":  # each voxel has a phase of its own
            a, b = (m * np.exp(-1j * np.angle(m[:1])) for m in (np.asarray(a), np.asarray(b)))
        print(f"| {name} | {difference(b, a):.2g} | {their_s:.2f} | {our_s:.2f} | "
              f"{their_s / our_s:.1f} |", flush=True)


if __name__ == "__main__":
    main()
