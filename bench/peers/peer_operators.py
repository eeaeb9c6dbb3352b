# SPDX-License-Identifier: Apache-2.0
"""Cases of run_all that compare operators and solvers with those of SigPy, PyLops and SciPy."""

import importlib

import numpy as np
from peer_cases import Case, module, random, scipy

import palimpsest as ps

sigpy = module("sigpy")
pylops = module("pylops")


def operator_case(name, ours, x, peer, theirs, tolerance=1e-4):
    """`theirs` is None where the peer is not installed."""

    def make():
        A, tensor = ours(), ps.asarray(x)
        calls = {"ours": lambda: A(tensor)}
        if theirs is not None:
            calls[peer] = theirs()
        return calls

    return Case(name, make, tolerance)


def sigpy_cases():
    """The same operators in SigPy: forward, adjoint, and the normal operator of a CG-SENSE iteration."""
    image, coils = random((512, 512), np.complex64), random((8, 256, 256), np.complex64)

    def of(name, ours, x, make, tolerance=1e-4):
        def theirs():
            A = make(importlib.import_module("sigpy.linop"))
            return lambda: A(x)

        return operator_case(name, ours, x, "SigPy", theirs if sigpy else None, tolerance)

    yield of("operator centered FFT 8x256^2", lambda: ps.Fft(2, centered=True), coils,
             lambda linop: linop.FFT(coils.shape, axes=(-2, -1)))
    yield of("operator inverse FFT 8x256^2", lambda: ps.Fft(2, centered=True).H, coils,
             lambda linop: linop.FFT(coils.shape, axes=(-2, -1)).H)
    yield of("operator roll by (30, 40) 512^2", lambda: ps.Roll("Y X", "Y X", (30, 40)), image,
             lambda linop: linop.Circshift(image.shape, (30, 40)))
    yield of("operator pad to 768^2 512^2", lambda: ps.Pad((512, 512), (768, 768), batch=()), image,
             lambda linop: linop.Resize((768, 768), image.shape))
    yield of("operator crop to 256^2 512^2", lambda: ps.Crop((512, 512), (256, 256), batch=()), image,
             lambda linop: linop.Resize((256, 256), image.shape))
    # SigPy's differences are backward.
    yield of("operator gradient 512^2", lambda: ps.Gradient("Y X", "Y X", direction="backward"), image,
             lambda linop: linop.FiniteDifference(image.shape, axes=(0, 1)))
    blocks = (8, 8), (4, 4)
    yield of("operator blocks 8^2 every 4 512^2",
             lambda: ps.ArrayToBlocks((512, 512), *blocks, batch=()), image,
             lambda linop: linop.ArrayToBlocks(image.shape, *blocks))
    locs = np.random.default_rng(5).uniform(-128, 128, (100_000, 2)).astype(np.float32)
    yield of("operator NUFFT 256^2 1e5 points", lambda: ps.Nufft(locs, (256, 256), "K", batch=(), eps=1e-3),
             random((256, 256), np.complex64), lambda linop: linop.NUFFT((256, 256), locs), 2e-2)
    yield sense_case()


def sense_case():
    """A^H A of 8 coils and every third line, as an iteration of CG-SENSE applies it."""

    def make():
        maps, x = random((8, 256, 256), np.complex64), random((256, 256), np.complex64)
        mask = np.zeros((256, 256), np.float32)
        mask[::3] = 1
        A = ps.sense_model(maps, mask=mask > 0).N
        tensor = ps.asarray(x)
        calls = {"ours": lambda: A(tensor)}
        if sigpy is not None:
            linop = importlib.import_module("sigpy.mri.linop")
            theirs = linop.Sense(maps, weights=mask).N
            calls["SigPy"] = lambda: theirs(x)
        return calls

    return Case("normal operator of SENSE 8x256^2", make)


def pylops_cases():
    """Operators of PyLops, which take flat vectors."""
    x = random((1024, 1024), np.float32)

    def of(name, ours, make, shape=None):
        def theirs():
            A = make()
            flat = x.ravel()
            return lambda: (A @ flat).reshape(shape or x.shape)

        return operator_case(name, ours, x, "PyLops", theirs if pylops else None)

    yield of("operator first difference 1024^2", lambda: ps.FiniteDifference("Y X", "X"),
             lambda: pylops.Roll(x.shape, axis=1, shift=-1, dtype="float32") - pylops.Identity(x.size, dtype="float32"))
    yield of("operator roll 1024^2", lambda: ps.Roll("Y X", "X", 100),
             lambda: pylops.Roll(x.shape, axis=1, shift=100, dtype="float32"))
    yield of("operator sum 1024^2", lambda: ps.SumReduce("Y X", "X"),
             lambda: pylops.Sum(x.shape, axis=0, dtype="float32"), (1024,))
    weights = random((1024, 1024), np.float32)
    yield of("operator diagonal 1024^2", lambda: ps.Diagonal(weights, "Y X"),
             lambda: pylops.Diagonal(weights.ravel(), dtype="float32"))
    yield of("operator FFT 1024^2", lambda: ps.Fft(2, batch=()),
             lambda: pylops.signalprocessing.FFT2D(x.shape, norm="ortho", dtype="complex64"))
    kernel = random((5, 5), np.float32)
    yield of("operator convolution 5^2 1024^2", lambda: ps.Convolution(kernel, batch=()),
             lambda: pylops.signalprocessing.Convolve2D(x.shape, h=kernel, offset=(2, 2), dtype="float32",
                                                        method="direct"))


def solver_cases():
    """Twenty iterations, stops switched off on both sides."""

    def lsqr(n):
        def make():
            draw = np.random.default_rng(6)
            a = (np.eye(n) + draw.standard_normal((n, n)) / np.sqrt(4 * n)).astype(np.float32)
            b = draw.standard_normal(n).astype(np.float32)
            A = ps.Dense(a, "MN,N->M")
            calls = {"ours": lambda: ps.lsqr(A, b, atol=0, btol=0, conlim=0, max_iterations=20, history=False).x}
            if scipy is not None:
                solve = importlib.import_module("scipy.sparse.linalg").lsqr
                calls["SciPy"] = lambda: solve(a, b, atol=0, btol=0, conlim=0, iter_lim=20)[0]
            return calls

        return Case(f"20 iterations of LSQR, dense {n}", make, tolerance=1e-3)

    yield lsqr(200)
    yield lsqr(2000)
    yield sense_solver_case()


def sense_solver_case():
    def make():
        draw = np.random.default_rng(7)
        maps = random((8, 256, 256), np.complex64)
        mask = np.zeros((256, 256), np.float32)
        mask[::3] = 1
        y = (draw.standard_normal((8, 256, 256)) + 1j * draw.standard_normal((8, 256, 256))).astype(np.complex64)
        y *= mask
        A = ps.sense_model(maps, mask=mask > 0)
        calls = {"ours": lambda: ps.cg_normal(A, y, tolerance=0, max_iterations=20, history=False).x}
        if sigpy is not None:
            app = importlib.import_module("sigpy.app")
            linop = importlib.import_module("sigpy.mri.linop")
            theirs = linop.Sense(maps, weights=mask)
            calls["SigPy"] = lambda: app.LinearLeastSquares(theirs, y, max_iter=20, tol=0,
                                                            show_pbar=False).run()
        return calls

    return Case("20 iterations of CG-SENSE 8x256^2", make, tolerance=1e-2)
