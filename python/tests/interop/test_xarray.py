# SPDX-License-Identifier: Apache-2.0
"""Arrays of xarray in, out, and as parameters."""

import numpy as np
import pytest

import palimpsest as ps

xarray = pytest.importorskip("xarray")
pytestmark = pytest.mark.xarray

RNG = np.random.default_rng(6)


def image(dims=("x", "y"), shape=(4, 6)):
    return xarray.DataArray(RNG.normal(size=shape), dims=dims,
                            coords={dims[0]: np.arange(shape[0]) * 0.5}, name="image",
                            attrs={"units": "mm"})


def test_dimensions_are_found_by_their_names():
    da = image()
    A = ps.Dense(RNG.normal(size=(3, 4)), "m x, x y -> m y")
    y = A(da)
    assert isinstance(y, xarray.DataArray) and y.dims == ("m", "y")
    expected = A(da.data)
    np.testing.assert_allclose(y.data, expected)
    turned = da.transpose("y", "x")
    with ps.CopyStats() as copies:
        z = A(turned)
    assert copies.copies + copies.import_copies == 0
    np.testing.assert_allclose(z.data, expected)
    back = A.H(y)
    assert back.dims == ("x", "y")


def test_coordinates_of_kept_dimensions_stay():
    da = image().assign_coords(y=list("abcdef"), both=(("x", "y"), np.zeros((4, 6))), scan=7)
    D = ps.Diagonal(np.ones((4, 6)), "x y")
    y = D(da)
    assert set(y.coords) == {"x", "y", "both", "scan"}
    assert y.attrs == {"units": "mm"} and y.name == "image"
    summed = ps.SumReduce("x y", "y", sizes={"x": 4})(da)
    assert summed.dims == ("y",) and set(summed.coords) == {"y", "scan"}
    np.testing.assert_allclose(summed.data, da.data.sum(axis=0))
    cropped = ps.Crop((6,), (2,), in_="y", out="z", batch="x")(da)
    assert cropped.dims == ("x", "z") and set(cropped.coords) == {"x", "scan"}


def test_other_dimensions_go_where_the_ellipsis_is():
    da = xarray.DataArray(RNG.normal(size=(3, 4, 5)), dims=("Nx", "coil", "Ny"))
    y = ps.Fft(2)(da)
    assert y.dims == ("coil", "Kx", "Ky")
    expected = np.fft.fft2(da.transpose("coil", "Nx", "Ny").data, norm="ortho")
    np.testing.assert_allclose(y.data, expected)
    np.testing.assert_allclose(ps.Fft(2).H(y).transpose("Nx", "coil", "Ny").data, da.data)


def test_parameters_have_the_dimensions_of_the_array():
    da = image()
    D = ps.Diagonal(da)
    assert D.ishape == ("x", "y")
    np.testing.assert_allclose(D(da).data, da.data**2)
    C = ps.Diagonal(da, "c x y")
    assert C.weight.shape == (4, 6) and C.ishape == ("c", "x", "y")
    T = ps.Diagonal(da.transpose("y", "x"), "x y")
    np.testing.assert_allclose(T(np.ones((4, 6))), da.data)
    W = ps.Dense(da, ishape="y", oshape="x")
    np.testing.assert_allclose(W(np.ones(6)), da.data.sum(axis=1))
    E = ps.Dense(da, "x y, y -> x")
    np.testing.assert_allclose(E(np.ones(6)), W(np.ones(6)))


def test_solutions_have_the_dimensions_of_the_operator():
    M = RNG.normal(size=(8, 4))
    A = ps.Dense(M, "m x, x y -> m y")
    b = xarray.DataArray(RNG.normal(size=(6, 8)), dims=("y", "m"), coords={"y": np.arange(6)})
    r = ps.cg_normal(A, b, tolerance=1e-12, max_iterations=200)
    assert r.x.dims == ("x", "y") and "y" in r.x.coords
    np.testing.assert_allclose(r.x.data, np.linalg.lstsq(M, b.data.T, rcond=None)[0], rtol=1e-7)


def test_functions_know_no_names():
    v = ps.dmatrix("v")
    y = ps.function([v], v.T)(image())
    assert isinstance(y, xarray.DataArray) and y.dims == ("dim_0", "dim_1") and y.shape == (6, 4)


def test_mistakes():
    A = ps.Diagonal(np.ones((4, 6)), "x y")
    with pytest.raises(ps.ShapeError, match="no dimension y.*expected .x, y."):
        A(image(dims=("x", "z")))
    with pytest.raises(ps.ShapeError, match="additional dimension t"):
        A(xarray.DataArray(np.ones((4, 6, 2)), dims=("x", "y", "t")))
    with pytest.raises(NameError, match="rename.*'space_x'"):
        A(xarray.DataArray(np.ones((4, 6)), dims=("Space X", "y")))
    with pytest.raises(NameError, match="'x'"):
        A(xarray.DataArray(np.ones((4, 6)), dims=("2x", "y")))
    with pytest.raises(ps.ShapeError, match="size of dim"):
        A(image(shape=(4, 5)))
    v = ps.dmatrix("v")
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="mixed kinds"):
        ps.function([v, w := ps.dmatrix("w")], v + w)(
            image(), torch.ones((4, 6), dtype=torch.float64))
