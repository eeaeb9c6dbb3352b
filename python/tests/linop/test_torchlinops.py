# SPDX-License-Identifier: Apache-2.0
"""Signatures of torch-named-linops, against NumPy."""

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.torchlinops as tl

RNG = np.random.default_rng(11)
V = RNG.normal(size=6)
W = RNG.normal(size=(4, 6))

# name: (operator, sizes that it does not know, its matrix)
CASES = {
    "Dense.from_einstr": lambda: (tl.Dense.from_einstr(np.array(W), "MN,N->M"), {}, W),
    "Diagonal": lambda: (tl.Diagonal(np.array(V), "N"), {}, np.diag(V)),
    "Diagonal.from_weight": lambda: (
        tl.Diagonal.from_weight(np.array(V), "N", "CN", {"broadcast_dims": "C"}), {"C": 2},
        np.diag(np.tile(V, 2))),
    "Scalar": lambda: (tl.Scalar(3.0, "N"), {"N": 2}, 3 * np.eye(2)),
    "FFT": lambda: (tl.FFT(1, (), ("A", "B"), norm=None), {"A": 4, "B": 4},
                    np.fft.fft(np.eye(4))),
    "Pad": lambda: (tl.Pad((5,), (3,)), {}, np.eye(5)[:, 1:4]),
    "Crop": lambda: (tl.Crop((3,), (5,)), {}, np.eye(5)[1:4]),
    "Truncate": lambda: (tl.Truncate(0, 4, 2, "A", "B"), {}, np.eye(4)[:2]),
    "PadDim": lambda: (tl.PadDim(0, 2, 4, "A", "B"), {}, np.eye(4)[:, :2]),
    "Repeat": lambda: (tl.Repeat({"B": 2}, "A", "BA"), {"A": 3}, np.vstack([np.eye(3)] * 2)),
    "Rearrange": lambda: (tl.Rearrange("(A B)", "A B", "N", "AB", {"A": 2}), {"N": 6, "B": 3},
                          np.eye(6)),
    "Sampling": lambda: (tl.Sampling((np.array([0, 2]),), (4,), "M", "N"), {}, np.eye(4)[[0, 2]]),
    "Sampling.from_mask": lambda: (
        tl.Sampling.from_mask(np.array([True, False, True]), (3,), "M", "N"), {}, np.eye(3)[[0, 2]]),
    "Sampling.from_stacked_idx": lambda: (
        tl.Sampling.from_stacked_idx(np.array([[0, 3]]), (4,), "M", "N", dim=0), {},
        np.eye(4)[[0, 3]]),
    "ArrayToBlocks": lambda: (tl.ArrayToBlocks((5,), (3,), (2,)), {},
                              np.concatenate([np.eye(5)[:3], np.eye(5)[2:]])),
    "BlocksToArray": lambda: (tl.BlocksToArray((5,), (3,), (2,)), {},
                              np.concatenate([np.eye(5)[:3], np.eye(5)[2:]]).T),
    "SimpleLinop": lambda: (tl.SimpleLinop(lambda x: 2.0 * x, lambda y: 2.0 * y, ishape="N"),
                            {"N": 3}, 2 * np.eye(3)),
    "ToDevice": lambda: (tl.ToDevice(tl.DeviceSpec("cpu"), None, "N"), {"N": 2}, np.eye(2)),
    "Sleep": lambda: (tl.Sleep(0.0, "N"), {"N": 2}, np.eye(2)),
    "Convolution": lambda: (
        tl.Convolution(np.array([1.0, 2.0, 3.0]), (), "N", padding_mode="zeros"), {"N": 5},
        np.stack([np.convolve(e, [1, 2, 3], "same") for e in np.eye(5)], 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_signature(name):
    A, sizes, expected = CASES[name]()
    np.testing.assert_allclose(A.matrix(**sizes), expected, atol=1e-12)
    assert ps.dot_test(A, sizes=sizes)


def test_nufft_and_interpolation():
    locs = np.linspace(-3, 2.7, 9)[:, None]
    n = np.arange(8) - 4
    A = tl.NUFFT(locs, (8,), "K", width=6.0, oversamp=2.0)
    np.testing.assert_allclose(A.matrix(), np.exp(-2j * np.pi * locs * n / 8) / np.sqrt(8),
                               atol=1e-4)
    assert ps.dot_test(tl.Interpolate(locs + 4, (8,), grid_shape="N", kernel_params={"beta": 5.0}))
    with pytest.raises(NotImplementedError, match="spline"):
        tl.Interpolate(locs, (8,), kernel="spline")


def test_iterative_methods():
    A = tl.Dense(np.array(W).T, "MN", "N", "M")
    b = RNG.normal(size=4)
    x = tl.conjugate_gradients(A.N, b, max_num_iters=50, gtol=1e-9)
    np.testing.assert_allclose(x, np.linalg.solve(W @ W.T, b), rtol=1e-6)
    assert not tl.conjugate_gradients(A.N, np.zeros(4)).any()
    vector, value = tl.power_method(A.N, np.ones(4), max_iters=500, tol=1e-12)
    assert abs(value - np.linalg.eigvalsh(W @ W.T)[-1]) < 1e-6 * value
    np.testing.assert_allclose(A.N(vector), value * vector, atol=1e-3)
    with pytest.raises(NotImplementedError, match="dim"):
        tl.power_method(A.N, np.ones(4), dim=0)
    P = tl.polynomial_preconditioner(A.N, 2, "l_inf", lower_eig=0.1)
    assert P.ishape == A.ishape


def test_cutting():
    A = tl.Dense(np.array(W), "MN", "N", "M")
    tiles, inputs, outputs = tl.split_linop(A, {"M": 2})
    assert tiles.shape == (2,) and outputs[1]["M"] == slice(2, 4)
    batched = tl.create_batched_linop(A, tl.BatchSpec({"M": 2}, np.array(["cpu"]), "cpu"))
    np.testing.assert_allclose(batched.matrix(), W)


def test_config():
    assert tl.config.cache_adjoint_normal is True
    A = tl.Dense(np.array(W), "MN", "N", "M")
    with tl.config.using(cache_adjoint_normal=False):
        assert A.H is not A.H
    assert A.H is A.H
    with pytest.raises(ValueError, match="Invalid config key"):
        tl.config.using(threads=2)
    with pytest.raises(AttributeError, match="expected one of"):
        tl.config.threads


class TestContract(tl.testing.BaseNamedLinopTests):
    @pytest.fixture(params=["dense", "chain", "sum"])
    def linop_input_output(self, request):
        A = tl.Dense(np.array(W), "MN", "N", "M")
        made = {"dense": A, "chain": A @ tl.Diagonal(np.array(V), "N"), "sum": tl.Add(A, A)}
        return made[request.param], RNG.normal(size=6), RNG.normal(size=4)


def test_attributes_of_factories():
    np.testing.assert_allclose(ps.Dense.from_einstr(W, "MN,N->M").matrix(), W)
    np.testing.assert_allclose(ps.Sampling.from_mask([True, False], input="N").matrix(), [[1, 0]])
    np.testing.assert_allclose(ps.Diagonal.from_weight(V, "N", "N").matrix(), np.diag(V))
    assert ps.Dense.__doc__ and ps.Dense.__name__ == "Dense"
    with pytest.raises(NameError, match="other"):
        ps.Diagonal.from_weight(V, "N", "N", {"other": 1})
    with pytest.raises(ValueError, match="together"):
        tl.Dense(W, "MN")


def test_functions_as_operators():
    d = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(tl.conjugate_gradients(lambda x: d * x, np.ones(3)), 1 / d, atol=1e-3)
    vector, value = tl.power_method(lambda x: d * x, np.ones(3), max_iters=200)
    assert value == pytest.approx(4, rel=1e-3) and abs(vector[2]) == pytest.approx(1, abs=1e-2)


def test_classes_by_name():
    A, B = tl.Dense(W), tl.Diagonal(V, ioshape="N")
    assert isinstance(A, tl.Dense) and isinstance(A.H, tl.Dense) and not isinstance(B, tl.Dense)
    assert isinstance(tl.FFT(1), tl.FFT) and isinstance(tl.Add(B, B), tl.Add) and not isinstance(3, tl.Add)
