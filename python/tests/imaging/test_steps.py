# SPDX-License-Identifier: Apache-2.0
"""Single steps between k-space and images, files of images, and proximal functions as regularizers."""

import numpy as np
import pytest

import palimpsest as ps

N = 48
RNG = np.random.default_rng(3)
HEAD = ps.ellipse_image(ps.modified_shepp_logan(), N, N)
Y, X = np.mgrid[0:N, 0:N] / N - 0.5
IMAGE = (HEAD * np.exp(1j * (X + Y))).astype("complex64")
KSPACE = ps.transform(IMAGE, [0, 1])


def centered(x, axes, inverse=False):
    f = np.fft.ifftn if inverse else np.fft.fftn
    return np.fft.fftshift(f(np.fft.ifftshift(x, axes), axes=axes, norm="ortho"), axes)


def test_transforms_are_those_of_numpy():
    np.testing.assert_allclose(KSPACE, centered(IMAGE, (0, 1)), atol=1e-5)
    np.testing.assert_allclose(ps.transform(KSPACE, [1], inverse=True), centered(KSPACE, (1,), True), atol=1e-5)
    np.testing.assert_allclose(ps.transform(IMAGE, [0], norm="backward", centered=False), np.fft.fft(IMAGE, axis=0), atol=1e-4)
    coils = np.stack([KSPACE, 2 * KSPACE])
    np.testing.assert_allclose(ps.coil_images(coils), centered(coils, (1, 2), True), atol=1e-5)
    with pytest.raises(ValueError, match="axes"):
        ps.transform(IMAGE, [0, 0])
    with pytest.raises(TypeError, match=r"axes: got str, expected Sequence\[int\]"):
        ps.transform(IMAGE, "ab")


def test_images_along_a_trajectory():
    spokes = ps.radial_trajectory(spokes=80, samples=2 * N, golden=1)
    F = ps.trajectory_transform(spokes, (N, N))
    exact = ps.ellipse_kspace(ps.modified_shepp_logan(), N, N, trajectory=spokes)
    assert np.linalg.norm(F(HEAD.astype("complex64")) - exact) < 0.08 * np.linalg.norm(exact)
    found = ps.inverse_trajectory_transform(F(IMAGE), spokes, (N, N), max_iterations=80)
    assert np.linalg.norm(found - IMAGE) < 0.12 * np.linalg.norm(IMAGE)


def test_models():
    A = ps.sense_model(ps.ring_coil_maps(3, N, N))
    k = ps.fake_kspace(A, IMAGE)
    np.testing.assert_allclose(k, A(IMAGE))
    np.testing.assert_allclose(ps.adjoint_image(A, k), A.H(k), atol=1e-6)
    np.testing.assert_allclose(ps.adjoint_image(A, k, np.full(k.shape, 2, "float32")), 2 * A.H(k), atol=1e-5)
    replaced = ps.fake_kspace(A, IMAGE, np.where(np.arange(N) < 4, 7, 0) * np.ones_like(k))
    assert np.all(replaced[..., :4] == 7) and np.array_equal(replaced[..., 4:], k[..., 4:])


def test_partial_fourier():
    mask = ps.partial_pattern((N, N), 0.625, 0)
    lines = ps.partial_lines(mask)
    assert (lines.axis, lines.extent, lines.acquired, lines.from_end) == (0, N, 30, False)
    assert lines.beyond_middle == 5 and ps.partial_lines(np.ones((N, N), bool)) is None
    zeros = ps.transform(KSPACE * mask, [0, 1], inverse=True)

    def error(found):
        return np.linalg.norm(np.abs(found) - HEAD) / np.linalg.norm(HEAD)

    for found in (ps.homodyne(KSPACE * mask, 0, 0.625), ps.pocs(KSPACE * mask, mask, max_iterations=20)):
        assert found.shape == IMAGE.shape and error(found) < 0.4 * error(zeros)
    turned = ps.homodyne((KSPACE * mask)[::-1], 0, 0.625, from_end=True)
    assert turned.shape == IMAGE.shape
    with pytest.raises(ValueError, match="fraction"):
        ps.homodyne(KSPACE, 0, 0.4)


def test_echoes():
    forward = ps.transform(HEAD.sum(axis=0, keepdims=True).astype("complex64"), [1])
    phase = np.exp(1j * (0.4 - 0.01 * (np.arange(N) - N // 2)))
    backward = centered(centered(forward, (1,), True) * phase, (1,)).astype("complex64")
    constant, slope = ps.echo_phase(forward, backward)
    assert constant == pytest.approx(0.4, abs=1e-4) and slope == pytest.approx(-0.01, abs=1e-4)
    is_reversed = np.arange(N) % 2 == 1
    lagging = centered(IMAGE * phase, (0, 1))
    measured = np.where(is_reversed[:, None], lagging, KSPACE).astype("complex64")[None]
    aligned = ps.aligned_echoes(measured, is_reversed, forward, backward)
    np.testing.assert_allclose(aligned[0], KSPACE, atol=2e-3)
    assert not np.allclose(measured[0], KSPACE, atol=2e-3)
    with pytest.raises(ValueError, match="navigator"):
        ps.aligned_echoes(measured, is_reversed)


def test_g_factor():
    maps = ps.ring_coil_maps(4, 16, 16)
    mask = np.zeros((16, 16), bool)
    mask[::2] = True
    options = {"replicas": 24, "max_iterations": 20, "seed": 5}
    found = ps.g_factor(maps, mask, regularizers=ps.SquaredL2(1e-6), **options)
    assert found.acceleration == 2 and found.warning == "" and found.g.shape == found.deviation.shape == (16, 16)
    np.testing.assert_allclose(found.g, found.deviation / found.full_deviation / np.sqrt(2), rtol=1e-5)
    same = ps.g_factor(maps, mask, regularizers="l2:1e-6", **options)
    assert np.array_equal(found.g, same.g)
    assert "nonlinear" in ps.g_factor(maps, mask, regularizers="l1wav:0.01", **options | {"replicas": 2}).warning
    with pytest.raises(ValueError, match="replicas"):
        ps.g_factor(maps, mask, replicas=1)


def test_volume_patterns():
    mask = ps.volume_pattern((12, 20, 24), kind="random", acceleration=6, center=4, seed=2)
    assert mask.shape == (12, 20, 24) and ps.count_samples(mask) == 12 * 20 * 24 // 6
    assert mask[4:8, 8:12, 10:14].all()


def test_nifti(tmp_path):
    volume = RNG.normal(size=(2, 4, 5, 6)).astype("float32")
    affine = [[0, 2, 0, -3], [1, 0, 0, 4], [0, 0, 3, 5]]
    path = tmp_path / "a.nii.gz"
    ps.write_nifti(path, volume, spacing_mm=(3, 2, 1), description="noise", affine_ras=affine, time_step_s=0.5)
    image = ps.read_nifti(path)
    assert np.array_equal(image.data, volume) and image.spacing_mm == [3, 2, 1] and image.description == "noise"
    assert np.array_equal(image.affine_ras, affine) and image.time_step_s == 0.5
    nibabel = pytest.importorskip("nibabel")
    theirs = nibabel.load(path)
    assert np.array_equal(theirs.get_fdata(), volume.T) and np.array_equal(theirs.affine[:3], affine)
    ps.write_nifti(path, volume)
    assert ps.read_nifti(path).spacing_mm == [1, 1, 1]
    with pytest.raises(ps.ShapeError):
        ps.write_nifti(path, np.float32(1))


def test_ismrmrd_images(tmp_path):
    path = str(tmp_path / "images.h5")
    images = (RNG.normal(size=(3, 2, 1, 4, 5)) + 1j).astype("complex64")
    heads = [ps.IsmrmrdImageHead() for _ in range(3)]
    for i, head in enumerate(heads):
        head.slice, head.position_mm, head.attributes = i, (0, 0, 2.5 * i), [("note", f"slice {i}")]
    ps.write_ismrmrd_images(path, images, heads=heads, series="mine")
    contents = ps.ismrmrd_contents(path)
    assert contents.image_series == ["mine"] and not contents.has_scan
    found = ps.read_ismrmrd_images(path, "mine")
    assert np.array_equal(found.data, images) and found.series == "mine"
    assert [(h.slice, h.position_mm[2]) for h in found.heads] == [(0, 0), (1, 2.5), (2, 5)]
    assert [h.attributes for h in found.heads] == [[("note", f"slice {i}")] for i in range(3)]
    ps.write_ismrmrd_images(path, images.real)
    real = ps.read_ismrmrd_images(path)
    assert np.array_equal(real.data, images.real) and [h.image_index for h in real.heads] == [0, 1, 2]
    with pytest.raises(ValueError):
        ps.write_ismrmrd_images(path, images, heads=heads[:2])


FUNCTIONS = {
    "l2:0.01": lambda: ps.SquaredL2(0.01), "l1:0.002": lambda: ps.L1(0.002),
    "l1wav:0.002,wavelet=db4,levels=3": lambda: ps.L1Wavelet(0.002, "Ny Nx", family="db4", levels=3, shift="random"),
    "l1wav(Nx):0.002,shift=none": lambda: ps.L1Wavelet(0.002, "Nx"),
    "tv:0.002,boundary=neumann,direction=forward": lambda: ps.TotalVariation(0.002, "Ny Nx"),
    "tv(Ny):0.002,iso=0": lambda: ps.TotalVariation(0.002, "Ny", isotropic=False, boundary="periodic", direction="backward"),
    "nonneg": ps.NonNegative, "real": ps.RealValued,
}
MAPS = ps.ring_coil_maps(3, N, N)
MEASURED = ps.sense_model(MAPS)(IMAGE) * (np.arange(N)[:, None] % 2 == 0)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_a_function_is_the_regularizer_of_its_text(text):
    options = {"max_iterations": 6, "tolerance": 0}
    by_text = ps.reconstruct(MEASURED, MAPS, regularizers=text, **options)
    by_function = ps.reconstruct(MEASURED, MAPS, regularizers=FUNCTIONS[text](), **options)
    assert by_text.method == by_function.method and np.array_equal(by_text.image, by_function.image)


@pytest.mark.parametrize("text, function", [
    ("lr:0.02", lambda: ps.Nuclear(0.02, "Ny Nx", "T")),
    ("llr(Ny=8,Nx=8;T):0.02", lambda: ps.LocallyLowRank(0.02, {"Ny": 8, "Nx": 8}, "T", shift="random")),
    ("llr(Ny=8,Nx=8;T):0.02,shift=none,scale=bart", lambda: ps.LocallyLowRank(0.02, {"Ny": 8, "Nx": 8}, "T", scale="bart"))])
def test_functions_of_a_series(text, function):
    mask = np.stack([np.arange(N) % 3 == t for t in range(3)])[:, :, None] * np.ones(N, bool)
    kspace = ps.sense_model(MAPS, mask=mask)(np.stack([IMAGE, IMAGE * 1.1, IMAGE * 0.9]))
    images = [ps.reconstruct(kspace, MAPS, mask=mask, regularizers=given, max_iterations=4, tolerance=0).image
              for given in (text, function())]
    assert np.array_equal(*images)


def test_functions_that_are_no_regularizers():
    for wrong, error in ((ps.Huber(0.1, 0.2), "expected one of SquaredL2, L1"), (ps.L1(np.ones(3)), "an array as lambda"),
                         (ps.SquaredL2(0.1, center=IMAGE), "an array as center")):
        with pytest.raises(ValueError, match=error):
            ps.reconstruct(MEASURED, MAPS, regularizers=wrong)
    with pytest.raises(TypeError, match=r"got int, expected texts such as 'l1wav:0.01', or functions"):
        ps.reconstruct(MEASURED, MAPS, regularizers=[3])
