# SPDX-License-Identifier: Apache-2.0
"""The operators of palimpsest.sigpy: laws of each, and the numbers of SigPy where that is installed."""

import itertools
import pickle

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.sigpy as sp
from palimpsest.sigpy import linop


class Random:
    """The same numbers for both packages."""

    def __init__(self):
        self.rng = np.random.default_rng(5)

    def __call__(self, *shape):
        return self.rng.standard_normal(shape) + 1j * self.rng.standard_normal(shape)

    def points(self, *shape):
        return self.rng.uniform(-3, 3, shape)


CASES = {
    "Identity": lambda o, r: o.Identity((3, 4)),
    "Reshape": lambda o, r: o.Reshape((4, 3), (2, 6)),
    "Reshape to a vector": lambda o, r: o.Reshape((6,), (2, 3)),
    "Reshape of a vector": lambda o, r: o.Reshape((1, 6, 1), (6,)),
    "Transpose": lambda o, r: o.Transpose((2, 3, 4)),
    "Transpose axes": lambda o, r: o.Transpose((2, 3, 4), (1, 2, 0)),
    "FFT": lambda o, r: o.FFT((4, 5)),
    "FFT first axes": lambda o, r: o.FFT((4, 5, 3), axes=(0, 1)),
    "FFT not centred": lambda o, r: o.FFT((4, 5, 3), axes=(0, -1), center=False),
    "FFT four axes": lambda o, r: o.FFT((2, 3, 2, 3)),
    "IFFT": lambda o, r: o.IFFT((4, 5, 3), axes=(1,)),
    "MatMul": lambda o, r: o.MatMul((5, 2, 3), r(5, 4, 2)),
    "MatMul adds axes": lambda o, r: o.MatMul((2, 3), r(4, 4, 2)),
    "MatMul stretches x": lambda o, r: o.MatMul((1, 2, 3), r(4, 4, 2)),
    "MatMul stretches the matrix": lambda o, r: o.MatMul((5, 2, 3), r(1, 4, 2)),
    "MatMul adjoint": lambda o, r: o.MatMul((5, 4, 3), r(5, 4, 2), adjoint=True),
    "RightMatMul": lambda o, r: o.RightMatMul((5, 4, 2), r(5, 2, 3)),
    "RightMatMul adds axes": lambda o, r: o.RightMatMul((4, 2), r(5, 2, 3)),
    "Multiply number": lambda o, r: o.Multiply((4,), 1.5),
    "Multiply complex": lambda o, r: o.Multiply((4,), 1.5j),
    "Multiply maps": lambda o, r: o.Multiply((5, 6), r(4, 5, 6)),
    "Multiply fewer axes": lambda o, r: o.Multiply((5, 6), r(6)),
    "Multiply stretches": lambda o, r: o.Multiply((5, 6), r(5, 1)),
    "Multiply stretches x": lambda o, r: o.Multiply((5, 1), r(5, 6)),
    "Multiply all": lambda o, r: o.Multiply((2, 1, 5, 1), r(3, 1, 6), conj=True),
    "Multiply one element": lambda o, r: o.Multiply((3,), r(1)),
    "Multiply one row": lambda o, r: o.Multiply((3,), r(1, 1)),
    "Multiply scalar array": lambda o, r: o.Multiply((3, 4), np.array(2.0)),
    "Interpolate": lambda o, r: o.Interpolate((5,), np.array([[0.5], [1.5], [2.5], [4.7], [-3.2]])),
    "Interpolate batch": lambda o, r: o.Interpolate((2, 5, 6), r.points(7, 2)),
    "Interpolate quadratic": lambda o, r: o.Interpolate((5, 6), r.points(3, 4, 2), width=3, param=2),
    "Interpolate nearest": lambda o, r: o.Interpolate((5, 6), r.points(3, 4, 2), width=4, param=0),
    "Interpolate by I0": lambda o, r: o.Interpolate((3, 5, 6), r.points(7, 2), "kaiser_bessel", 4, 8),
    "Gridding": lambda o, r: o.Gridding((2, 5, 6), r.points(3, 4, 2)),
    "Resize": lambda o, r: o.Resize((5, 3), (3, 6)),
    "Resize odd": lambda o, r: o.Resize((4, 4), (3, 4)),
    "Resize oshift": lambda o, r: o.Resize((5,), (3,), oshift=[1]),
    "Resize ishift": lambda o, r: o.Resize((3,), (5,), ishift=[1]),
    "Flip": lambda o, r: o.Flip((3, 4)),
    "Flip one": lambda o, r: o.Flip((3, 4), axes=(1,)),
    "Downsample": lambda o, r: o.Downsample((5, 6), (2, 3)),
    "Downsample shift": lambda o, r: o.Downsample((5, 6), (2, 3), shift=[1, 2]),
    "Upsample": lambda o, r: o.Upsample((5, 6), (2, 1)),
    "Circshift": lambda o, r: o.Circshift((5, 6), (1,), axes=(1,)),
    "Circshift all": lambda o, r: o.Circshift((5, 6), (1, -2)),
    "Sum": lambda o, r: o.Sum((2, 3, 4), (0, 2)),
    "Tile": lambda o, r: o.Tile((2, 3, 4), (1,)),
    "ArrayToBlocks": lambda o, r: o.ArrayToBlocks((7, 6), (2, 3), (1, 2)),
    "BlocksToArray": lambda o, r: o.BlocksToArray((3, 7, 6), (2, 3), (1, 2)),
    "FiniteDifference": lambda o, r: o.FiniteDifference((4, 5)),
    "FiniteDifference one": lambda o, r: o.FiniteDifference((4, 5), axes=(1,)),
    "NUFFT": lambda o, r: o.NUFFT((5, 6), r.points(7, 2)),
    "NUFFT other": lambda o, r: o.NUFFT((3, 5, 6), r.points(3, 4, 2), oversamp=1.5, width=5),
    "NUFFT 3-D": lambda o, r: o.NUFFT((4, 5, 6), r.points(9, 3)),
    "NUFFTAdjoint": lambda o, r: o.NUFFTAdjoint((3, 5, 6), r.points(7, 2)),
    "Slice": lambda o, r: o.Slice((5, 5), (slice(1, 3), slice(1, 3))),
    "Slice one axis": lambda o, r: o.Slice((5, 2), slice(1, 3)),
    "Slice steps": lambda o, r: o.Slice((5, 4, 3), (slice(0, 4, 2), 2)),
    "Embed": lambda o, r: o.Embed((5, 5), (slice(1, 3), slice(0, 5, 2))),
    "Hstack": lambda o, r: o.Hstack([o.FFT((3, 4)), o.Resize((3, 4), (3, 2))], axis=1),
    "Hstack vectors": lambda o, r: o.Hstack([o.FFT((3, 4)), o.Resize((3, 4), (2, 2))]),
    "Vstack": lambda o, r: o.Vstack([o.FFT((3, 4)), o.Resize((2, 4), (3, 4))], axis=0),
    "Vstack vectors": lambda o, r: o.Vstack([o.FFT((3, 4)), o.Resize((2, 2), (3, 4))]),
    "Diag": lambda o, r: o.Diag([o.FFT((3, 4)), o.Resize((2, 2), (3, 4))]),
    "Diag axes": lambda o, r: o.Diag([o.FFT((3, 4)), o.Resize((3, 3), (3, 2))], oaxis=1, iaxis=1),
    "Conj": lambda o, r: o.Conj(o.FFT((3, 4)) * o.Multiply((3, 4), 2j)),
    "sum": lambda o, r: o.FFT((3, 4)) + 3 * o.Identity((3, 4)) - o.Flip((3, 4)),
    "product": lambda o, r: 2j * o.FFT((4, 5, 6)) * o.Multiply((5, 6), r(4, 5, 6)) * (-o.Flip((5, 6))) * 2,
    "Sum of all": lambda o, r: o.Vstack([o.Sum((2, 3), (0, 1)), o.Identity((2, 3))]),
    "InverseWavelet": lambda o, r: o.InverseWavelet((17, 20)),
}
for _shape, _axes in (((16,), None), ((129,), None), ((17, 20), None), ((9, 12, 20), (0, 2))):
    for _name, _level in (("haar", None), ("db2", 1), ("db4", None), ("db4", 2)):
        CASES[f"Wavelet {_shape} {_name} {_level}"] = lambda o, r, s=_shape, a=_axes, w=_name, n=_level: o.Wavelet(
            s, axes=a, wave_name=w, level=n)
for _mode in ("full", "valid"):
    for _strides in (None, (2, 2)):
        _options = {"mode": _mode, "strides": _strides}
        for _what, _case in {
            "Data": lambda o, r, **k: o.ConvolveData((5, 3, 4), r(2, 3), **k),
            "Data of channels": lambda o, r, **k: o.ConvolveData((2, 3, 4), r(4, 2, 2, 3), multi_channel=True, **k),
            "Filter": lambda o, r, **k: o.ConvolveFilter((2, 3), r(3, 4), **k),
            "Filter of channels": lambda o, r, **k: o.ConvolveFilter((4, 2, 2, 3), r(6, 2, 3, 4), multi_channel=True,
                                                                     **k),
            "DataAdjoint": lambda o, r, **k: o.ConvolveDataAdjoint((3, 4), r(2, 3), **k),
            "FilterAdjoint": lambda o, r, **k: o.ConvolveFilterAdjoint((2, 3), r(3, 4), **k),
        }.items():
            CASES[f"Convolve{_what} {_mode} {_strides}"] = lambda o, r, c=_case, k=_options: c(o, r, **k)


def close(ours, expected, tolerance):
    assert np.shape(ours) == np.shape(expected)
    assert np.linalg.norm(ours - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("name", CASES)
def test_laws(name):
    A, r = CASES[name](linop, Random()), Random()
    x, y = r(*A.ishape), r(*A.oshape)
    Ax = A(x)
    assert list(Ax.shape) == A.oshape and A.H.H is A and A.H.ishape == A.oshape
    assert abs(np.vdot(Ax, y) - np.vdot(x, A.H * y)) <= 1e-12 * np.linalg.norm(Ax) * np.linalg.norm(y)
    close(A.N(x), A.H(Ax), 1e-12)
    close((A.H * A)(x), A.H(Ax), 1e-12)
    close(A(x.real), (Ax + A(x.conj())) / 2, 1e-12)
    again = pickle.loads(pickle.dumps(A))
    assert repr(again) == repr(A)
    np.testing.assert_array_equal(again(x), Ax)
    single = A.linop("complex64")(x.astype("complex64"))
    assert single.dtype == "complex64"
    close(single, Ax, 1e-5)


@pytest.mark.sigpy
@pytest.mark.filterwarnings("ignore")  # warnings of the compiler that SigPy uses
@pytest.mark.parametrize("name", CASES)
def test_the_numbers_of_sigpy(name):
    theirs = CASES[name](pytest.importorskip("sigpy").linop, Random())
    ours, r = CASES[name](linop, Random()), Random()
    assert list(theirs.ishape) == ours.ishape and list(theirs.oshape) == ours.oshape
    x, y = r(*ours.ishape), r(*ours.oshape)
    tolerance = 1e-6 if "NUFFT" in name or "I0" in name else 1e-12  # it has a polynomial for I0
    close(ours(x), theirs(x), tolerance)
    close(ours.H(y), theirs.H(y), tolerance)
    if "Blocks" not in name:  # the normal operator of ArrayToBlocks is the identity there
        close(ours.N(x), theirs.N(x), tolerance)


def test_one_plan_and_names_of_its_own():
    maps = Random()(4, 8, 8)
    A = linop.Multiply((4, 8, 8), 2.0) * linop.FFT((4, 8, 8), axes=(-1, -2)) * linop.Multiply((8, 8), maps)
    assert isinstance(A.linop(), ps.NamedLinop) and A.linop() is A.linop(True) is A.linop("complex128")
    assert A.linop(False) is A.linop("float32") is not A.linop()
    assert ps.dot_test(A.linop()) and A.linop().plan(np.zeros((8, 8), complex)).peak_bytes == maps.nbytes
    assert not {str(d) for d in A.linop().ishape} & {str(d) for d in A.linop().oshape} and A.H.H is A
    N = linop.NUFFT((8, 8), Random().points(20, 2), toeplitz=True)
    close(N.N(maps[0]), N.H(N(maps[0])), 0.02)  # of the exact transform


def test_names_of_another_process_do_not_meet(monkeypatch):
    from palimpsest.sigpy import _base

    made = [CASES[name](linop, Random()) for name in ("Multiply maps", "NUFFT other", "Wavelet (17, 20) db4 None")]
    for A in made:
        A.linop()
    for data in [pickle.dumps(A) for A in made]:
        monkeypatch.setattr(_base, "_counter", itertools.count())
        A = pickle.loads(data)
        before, after = [n + 2 for n in A.ishape], [n + 1 for n in A.oshape]
        B = linop.Resize(after, A.oshape) * A * linop.Resize(A.ishape, before)
        assert list(B(np.ones(B.ishape)).shape) == B.oshape


def test_precision_is_that_of_data_and_weights():
    x = np.ones(3, "float32")
    for mult, dtype in ((2, "float32"), (2.5, "float32"), (np.ones(3, int), "float32"), (np.float64(2), "float64"),
                        (np.ones(3, "float32"), "float32"), (np.ones(3), "float64"), (2j, "complex64"),
                        (np.full(3, 1j), "complex128")):
        A = linop.Multiply((3,), mult)
        assert A(x).dtype == dtype and (linop.Identity((3,)) * A)(x).dtype == dtype
    assert linop.FFT((3,))(x).dtype == "complex64" and linop.Identity((3,))(np.arange(3)).dtype == "float64"
    assert linop.NUFFT((3,), np.zeros((2, 1)))(x).dtype == "complex64"


class Running(sp.linop.Linop):
    """Derived as SigPy's users do."""

    def __init__(self, n):
        super().__init__((n,), (n,))

    def _apply(self, input):
        return np.cumsum(input)

    def _adjoint_linop(self):
        return Backwards(self.ishape[0])


class Backwards(Running):
    def _apply(self, input):
        return np.cumsum(input[::-1])[::-1]

    def _adjoint_linop(self):
        return Running(self.ishape[0])


def test_classes_of_a_user():
    A, x = Running(5), np.arange(5.0)
    np.testing.assert_allclose(A(x), np.cumsum(x))
    np.testing.assert_allclose((linop.Multiply((5,), 2.0) * A + linop.Identity((5,)))(x), 2 * np.cumsum(x) + x)
    close(A.N(x), A.H(A(x)), 1e-14)
    close((A * linop.Flip((5,))).H(x), A.H(x)[::-1], 1e-14)
    assert repr(A) == "<[5]x[5]> Running Linop>"
    with pytest.raises(NotImplementedError, match="expected a class with _apply"):
        linop.Linop((3,), (3,))(x[:3])


@pytest.mark.parametrize("call, text", [
    (lambda: linop.FFT((3, 4))(np.ones(3)), r"\[FFT\] x: got the shape \(3,\), expected \(3, 4\)"),
    (lambda: linop.FFT((3, 4), axes=(0, 2)), r"got the axes \(0, 2\), expected different ones of 2"),
    (lambda: linop.FFT((3,)) * linop.FFT((4,)), r"FFT after FFT: got the shapes \[\(3,\), \(4,\)\], expected one"),
    (lambda: linop.FFT((3,)) + linop.FFT((4,)), "oshape: got the shapes"),
    (lambda: linop.Identity((0, 2)), r"got the shape \(0, 2\), expected positive"),
    (lambda: linop.Multiply((3,), np.ones(2)), "expected ones that broadcast"),
    (lambda: linop.MatMul((3, 1), np.ones((2, 2))), "expected equal inner extents"),
    (lambda: linop.MatMul((3,), np.ones((3, 3))), "expected two axes or more"),
    (lambda: linop.Reshape((5,), (2, 3)), "elements: got the shapes"),
    (lambda: linop.Interpolate((4,), np.zeros((1, 1)), kernel="sinc"), "expected one of spline, kaiser_bessel"),
    (lambda: linop.Interpolate((4,), np.zeros((1, 1)), param=3)(np.ones(4)), "expected the order 0, 1 or 2"),
    (lambda: linop.ConvolveData((4,), np.ones(2), mode="same"), "expected 'full' or 'valid'"),
    (lambda: linop.ConvolveData((4, 2), np.ones((2, 3)), mode="valid"), "expected one inside the other"),
])
def test_mistakes(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("call, nearest", [
    (lambda: linop.Wavelet((8,), wave_name="sym4"), r"'sym4' is not mapped. The nearest is haar, db1 to db10\."),
    (lambda: linop.AllReduce((3,), None), "palimpsest.distribute"),
    (lambda: sp.Communicator(), "palimpsest.Team"), (lambda: sp.Device(0), "the host"),
    (lambda: sp.mri.linop.ConvSense((2,), None), "palimpsest.Convolution"),
    (lambda: sp.mri.app.JsenseRecon(None), "palimpsest.espirit"), (lambda: sp.alg.SDMM(), "palimpsest.admm"),
    (lambda: sp.mri.linop.Sense(np.ones((1, 2, 2)), comm=1), "palimpsest.distribute"),
    (lambda: sp.mri.spiral(), "palimpsest.spiral_trajectory"), (lambda: sp.shepp_logan((2, 2, 2)), "ellipse_image"),
])
def test_what_is_not_mapped_names_what_is_nearest(call, nearest):
    with pytest.raises(ps.NotSupported, match=nearest) as caught:
        call()
    assert isinstance(caught.value, NotImplementedError) and str(caught.value).startswith("[palimpsest.sigpy] ")
