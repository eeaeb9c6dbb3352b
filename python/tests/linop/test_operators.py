# SPDX-License-Identifier: Apache-2.0
"""Every operator from Python: its matrix against NumPy, and the laws that it obeys."""

import numpy as np
import pytest

import palimpsest as ps

RNG = np.random.default_rng(5)
W = RNG.normal(size=(4, 6)) + 1j * RNG.normal(size=(4, 6))
V = RNG.normal(size=6)


def dft(n):
    k = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(k, k) / n) / np.sqrt(n)


def matrix(f, n):
    return np.stack([np.asarray(f(e)).ravel() for e in np.eye(n)], axis=1)


def nufft_locs():
    return np.linspace(-3, 2.7, 9)[:, None]


def dense(weight=W, names="MN,N->M"):
    return ps.Dense(weight, names)


# name: (operator, sizes that it does not know, its matrix or None)
CASES = {
    "Dense": lambda: (ps.Dense(W), {}, W),
    "Dense einsum": lambda: (ps.Dense(W, "MN,N->M"), {}, W),
    "Dense names": lambda: (ps.Dense(W, "MN", "N", "M"), {}, W),
    "Diagonal": lambda: (ps.Diagonal(V, "N"), {}, np.diag(V)),
    "Scalar": lambda: (ps.Scalar(2j, "N"), {"N": 3}, 2j * np.eye(3)),
    "Identity": lambda: (ps.Identity("N"), {"N": 3}, np.eye(3)),
    "Zero": lambda: (ps.Zero("N", "M", sizes={"M": 2, "N": 3}), {"N": 3}, np.zeros((2, 3))),
    "SumReduce": lambda: (ps.SumReduce("AB", "A", sizes={"B": 3}), {"A": 2},
                          matrix(lambda e: e.reshape(2, 3).sum(1), 6)),
    "Repeat": lambda: (ps.Repeat({"B": 3}, "A", "AB"), {"A": 2},
                       matrix(lambda e: np.repeat(e[:, None], 3, 1), 2)),
    "Permute": lambda: (ps.Permute("AB", "BA"), {"A": 2, "B": 3},
                        matrix(lambda e: e.reshape(2, 3).T, 6)),
    "Rearrange": lambda: (ps.Rearrange("(A B) C -> A B C", {"A": 2}), {"Ab": 4, "A": 2, "B": 2, "C": 2}, np.eye(8)),
    "ShapeSpec": lambda: (ps.ShapeSpec("A", "B"), {"A": 3}, np.eye(3)),
    "Pad": lambda: (ps.Pad(3, 5), {}, np.eye(5)[:, 1:4]),
    "Crop": lambda: (ps.Crop(5, 3), {}, np.eye(5)[1:4]),
    "PadDim": lambda: (ps.PadDim("A", 2, 4, "A"), {}, np.eye(4)[:, :2]),
    "Truncate": lambda: (ps.Truncate("A", 4, 2, "A"), {}, np.eye(4)[:2]),
    "Restrict": lambda: (ps.Restrict("A", {"A": slice(1, 3)}, sizes={"A": 4}), {}, np.eye(4)[1:3]),
    "Embed": lambda: (ps.Embed("A", {"A": slice(1, 3)}, sizes={"A": 4}), {}, np.eye(4)[:, 1:3]),
    "Roll": lambda: (ps.Roll("A", "A", 1), {"A": 4}, np.roll(np.eye(4), 1, 0)),
    "Fft": lambda: (ps.Fft(1, batch=()), {"Nx": 8, "Kx": 8}, dft(8)),
    "Convolution": lambda: (ps.Convolution([1.0, 2.0, 3.0]), {"Nx": 6},
                            matrix(lambda e: np.convolve(e, [1, 2, 3], "same"), 6)),
    "FftConvolution": lambda: (ps.FftConvolution([1.0, 2.0, 3.0]), {"Nx": 6}, None),
    "FiniteDifference": lambda: (ps.FiniteDifference("A", "A"), {"A": 5},
                                 np.roll(np.eye(5), 1, 1) - np.eye(5)),
    "Gradient": lambda: (ps.Gradient("AB", "AB"), {"A": 3, "B": 4}, None),
    "Wavelet": lambda: (ps.Wavelet("A", "A", family="haar", levels=1), {"A": 4},
                        np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, -1, 0, 0], [0, 0, 1, -1]])
                        / np.sqrt(2)),
    "Sampling": lambda: (ps.Sampling([[0, 2, 2]], 4, input="N"), {}, np.eye(4)[[0, 2, 2]]),
    "SamplingFromMask": lambda: (ps.SamplingFromMask([True, False, True], input="N"), {}, np.eye(3)[[0, 2]]),
    "SamplingFromStacked": lambda: (ps.SamplingFromStacked([[0], [3]], 4, input="N"), {}, np.eye(4)[[0, 3]]),
    "ArrayToBlocks": lambda: (ps.ArrayToBlocks(5, 3, 2), {},
                              np.concatenate([np.eye(5)[:3], np.eye(5)[2:]])),
    "BlocksToArray": lambda: (ps.BlocksToArray(5, 3, 2), {},
                              np.concatenate([np.eye(5)[:3], np.eye(5)[2:]]).T),
    "Sparse": lambda: (ps.Sparse([1.0, 2.0, 3.0], [1, 0, 2], [0, 1, 3], 3), {},
                       np.array([[0, 1, 0], [2, 0, 3]])),
    "Nufft": lambda: (ps.Nufft(nufft_locs(), 8, "K", eps=1e-10), {},
                      np.exp(-2j * np.pi * np.outer(nufft_locs(), np.arange(8) - 4) / 8)
                      / np.sqrt(8)),
    "SamplingNufft": lambda: (ps.SamplingNufft(nufft_locs(), 8, "K"), {}, None),
    "Interpolate": lambda: (ps.Interpolate(nufft_locs() + 4, 8, width=3.0, grid="N"), {}, None),
    "RealPart": lambda: (ps.RealPart("A"), {"A": 3}, None),
    "ImagPart": lambda: (ps.ImagPart("A"), {"A": 3}, None),
    "AsReal": lambda: (ps.AsReal("A"), {"A": 3}, None),
    "AsComplex": lambda: (ps.AsComplex("A"), {"A": 3, "R": 2}, None),
    "ToDevice": lambda: (ps.ToDevice("cpu", "cpu", "A"), {"A": 3}, np.eye(3)),
    "Sleep": lambda: (ps.Sleep(0.0, "A"), {"A": 3}, np.eye(3)),
    "Chain": lambda: (ps.Chain(ps.Diagonal(V, "N"), dense()), {}, W @ np.diag(V)),
    "Add": lambda: (ps.Add(dense(), 2 * dense()), {}, 3 * W),
    "Concat": lambda: (ps.Concat([dense(), dense()], out="M"), {}, np.vstack([W, W])),
    "BlockDiagonal": lambda: (ps.BlockDiagonal(dense(), dense(), in_="N", out="M"), {},
                              np.block([[W, 0 * W], [0 * W, W]])),
    "Stack": lambda: (ps.Stack([dense(), dense()], out="C"), {}, np.vstack([W, W])),
    "Kronecker": lambda: (ps.Kronecker(dense(), dense(np.eye(2), "QP,P->Q")), {},
                          np.kron(W, np.eye(2))),
    # Operators of a team of one rank. Tests of more ranks are in distributed/.
    "AllReduce": lambda: (ps.AllReduce("N", ps.Team.world(), ["rank"]), {"N": 4}, np.eye(4)),
    "Broadcast": lambda: (ps.Broadcast("N", ps.Team.world(), ["rank"]), {"N": 4}, np.eye(4)),
    "Scatter": lambda: (ps.Scatter("N", 4, ps.Team.world(), {"N": "rank"}), {"N": 4}, np.eye(4)),
    "Gather": lambda: (ps.Gather("N", 4, ps.Team.world(), {"N": "rank"}), {"N": 4}, np.eye(4)),
    "Redistribute": lambda: (ps.Redistribute("NM", (4, 3), ps.Team.world(), {"N": "rank"}, {"M": "rank"}),
                             {"N": 4, "M": 3},
                             np.eye(12)),
    "Halo": lambda: (ps.Halo("N", "N", 4, ps.Team.world(), "rank"), {"N": 4}, np.eye(6, 4, -1)),
}


@pytest.mark.parametrize("name", CASES)
def test_matrix_and_laws(name):
    A, sizes, expected = CASES[name]()
    report = ps.check_contract(A, sizes=sizes)
    if name != "AsComplex":  # of random complex input
        assert report, report
        assert ps.dot_test(A, sizes=sizes)
    if expected is not None:
        np.testing.assert_allclose(A.matrix(**sizes), expected, atol=1e-6)
    assert A.H.H is A and A.H is A.H and "(" in repr(A)


def test_every_factory_is_tested():
    import palimpsest._core as core

    factories = {name for name in dir(core)
                 if name[0].isupper() and type(getattr(core, name)).__name__ == "nb_func"}
    tested = {name.split()[0] for name in CASES}
    # Examples run as tests, too: public/test_docstrings.py.
    tested |= {name for name in factories if "ps.check_contract(" in (getattr(ps, name).__doc__ or "")}
    aliases = {"FFT", "NUFFT", "FFTConvolution", "BreakpointLinop"}
    no_operators = {"DebugMode", "NanGuardMode", "MonitorMode", "Breakpoint", "Dim", "SimpleLinop"}  # functions/test_monitor.py, user/test_user_linop.py
    proxes = {"L1", "L2", "L21", "SquaredL2", "Huber", "ZeroProx", "Box", "NonNegative",
              "RealValued", "Ball", "Affine", "CustomProx", "TotalVariation", "L1Wavelet", "Nuclear",
              "LocallyLowRank"}
    assert factories - tested - aliases - no_operators == proxes  # solve/test_proxes.py
