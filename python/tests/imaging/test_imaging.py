# SPDX-License-Identifier: Apache-2.0
"""Imaging functions from Python: kinds, values against NumPy, errors."""

import numpy as np
import pytest

import palimpsest as ps

N = 48


@pytest.fixture(scope="module")
def scan():
    """A head, its maps, the mask and k-space."""
    image = ps.ellipse_image(ps.modified_shepp_logan(), N, N).astype("complex64")
    maps = ps.ring_coil_maps(6, N, N)
    mask = ps.sampling_pattern(N, N, acceleration=3, center=20, seed=1)
    return image, maps, mask, ps.sense_model(maps, mask=mask)(image)


def centred_fft(x):
    axes = (-2, -1)
    return np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(x, axes), norm="ortho"), axes)


def test_sense_model_is_maps_times_transform_times_mask(scan):
    image, maps, mask, kspace = scan
    np.testing.assert_allclose(kspace, mask * centred_fft(maps * image), atol=1e-5)


def test_a_reconstruction_from_measured_data_alone(scan):
    image, _, _, kspace = scan
    maps = ps.espirit(kspace).maps
    zero_filled = ps.reconstruct(kspace, maps, method="adjoint").image
    found = ps.reconstruct(kspace, maps, regularizers="l1wav:0.002", max_iterations=60, tolerance=0)
    seen = np.sqrt((np.abs(centred_fft(image)) ** 2).sum())
    assert seen > 0
    assert found.method == "fista"
    assert error(found.image, image) < 0.5 * error(zero_filled, image)


def error(x, image):
    return np.linalg.norm(np.abs(x) - np.abs(image)) / np.linalg.norm(image)


def test_plan_is_the_peak(scan):
    _, maps, mask, kspace = scan
    plan = ps.plan(ps.reconstruct, kspace, maps, mask=mask, max_iterations=5)
    kspace, maps, mask = (ps.asarray(x, copy=True) for x in (kspace, maps, mask))
    with ps.MemoryScope() as memory:
        found = ps.reconstruct(kspace, maps, mask=mask, max_iterations=5)
    # Besides the solve: the scaled data, and A^H y, which counts as memory of the caller.
    beside = kspace.nbytes + 2 * found.image.nbytes
    assert plan.peak_bytes <= memory.peak_bytes <= plan.peak_bytes + beside
    assert found.solve.iterations == 5
    assert found.solve.x is None


def test_espirit_plan_and_kinds(scan):
    kspace = ps.asarray(scan[3], copy=True)
    area = ps.calibration_area_of(kspace)
    plan = ps.plan(ps.espirit, kspace, area=area)
    with ps.MemoryScope() as memory:
        found = ps.espirit(kspace, area=area)
    assert memory.peak_bytes == plan.peak_bytes
    assert isinstance(found.maps, ps.Tensor)
    assert isinstance(ps.espirit(scan[3]).maps, np.ndarray)
    assert found.area == area and found.area.extent[1:] == [20, 20]
    assert ps.espirit(scan[3], keep_eigenvalues=False).eigenvalues is None


def test_none_is_automatic(scan):
    found = ps.espirit(scan[3], crop=None)
    assert 0 < found.crop < 1 and found.crop != 0.8


def test_whitening_makes_covariance_one():
    rng = np.random.default_rng(0)
    mix = np.array([[2.0, 0.5j], [0.1, 1.0]])
    noise = mix @ (rng.standard_normal((2, 4000)) + 1j * rng.standard_normal((2, 4000))) / np.sqrt(2)
    covariance = ps.noise_covariance(noise.astype("complex64"))
    np.testing.assert_allclose(covariance, mix @ mix.conj().T, atol=0.2)
    white = ps.whiten(noise.astype("complex64"), covariance)
    np.testing.assert_allclose(ps.noise_covariance(white), np.eye(2), atol=1e-3)


def test_coil_compression_keeps_the_energy(scan):
    image, maps, _, _ = scan
    kspace = ps.sense_model(maps)(image)
    compressed = ps.compress_coils(kspace, energy=0.98)
    assert compressed.kspace.shape[0] < 6
    np.testing.assert_allclose(np.linalg.norm(compressed.kspace) ** 2, np.linalg.norm(kspace) ** 2, rtol=0.03)
    np.testing.assert_allclose(compressed.operator(kspace), compressed.kspace, atol=1e-4)
    assert sum(compressed.energies) == pytest.approx(1)


def test_patterns_and_trajectories():
    mask = ps.sampling_pattern(64, 64, acceleration=4, center=16, seed=3)
    assert mask.dtype == bool and mask[24:40, 24:40].all() and ps.count_samples(mask) == 1024
    frames = ps.interleaved(mask, 4)
    assert (frames.sum(axis=0) == mask).all()
    assert ps.partial_pattern((8, 8), 0.75, 0)[:6].all()
    spokes = ps.radial_trajectory(spokes=8, samples=32)
    assert spokes.dtype == np.float32 and spokes.shape == (8, 32, 2)
    np.testing.assert_array_equal(ps.coordinates_of_grid(spokes), spokes[..., ::-1])
    assert ps.golden_angle(1) == pytest.approx(111.2461, abs=1e-4)
    weights = ps.density_compensation(spokes, "analytic")
    assert weights.shape == (8, 32) and (weights > 0).all()


def test_radial_model_is_a_nufft():
    maps = ps.ring_coil_maps(3, 16, 16)
    spokes = ps.radial_trajectory(spokes=6, samples=16)
    A = ps.sense_model(maps, trajectory=spokes)
    x = np.ones((16, 16), "complex64")
    k = spokes[2, 5]
    y, x_ = np.mgrid[:16, :16] - 8
    direct = (maps[1] * np.exp(-2j * np.pi * (k[0] * x_ + k[1] * y) / 16)).sum() / 16
    np.testing.assert_allclose(A(x)[1, 2, 5], direct, atol=1e-3)
    assert ps.image_dimensions(maps, trajectory=spokes) == ("Ny", "Nx")


def test_walsh_and_combination():
    maps = ps.ring_coil_maps(4, 24, 24)
    image = np.ones((24, 24), "complex64")
    found = ps.walsh(maps * image, block=5)
    assert found.shape == (1, 4, 24, 24)
    combined = ps.adaptive_combine(maps * image, found)
    np.testing.assert_allclose(np.abs(combined[0]), 1, atol=0.05)
    np.testing.assert_allclose(ps.rss_image(maps * image), 1, atol=1e-5)
    assert ps.brightness(maps * image).largest == pytest.approx(1, abs=1e-4)


def test_files(tmp_path):
    array = np.arange(6, dtype="complex64").reshape(2, 3)
    ps.write_cfl(str(tmp_path / "a"), array)
    np.testing.assert_array_equal(ps.read_cfl(tmp_path / "a"), array)
    assert ps.detect_format(tmp_path / "a.cfl") == "BART CFL"
    ps.write_npy(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array)
    assert isinstance(ps.map_npy(tmp_path / "a.npy"), ps.Tensor)
    with pytest.raises(OSError, match="nothing"):
        ps.read_nifti(tmp_path / "nothing.nii")


@pytest.mark.parametrize("call, error, text", [
    (lambda k: ps.espirit(k, kernle=6), TypeError, "unknown option 'kernle'.*kernel"),
    (lambda k: ps.espirit(k[0]), ValueError, "expected .coil, y, x"),
    (lambda k: ps.espirit(k.astype("complex128")), TypeError, "complex64"),
    (lambda k: ps.espirit(k, kernel="6"), TypeError, "kernel.*got str"),
    (lambda k: ps.espirit(k, area=(0, 1)), TypeError, "area.*CalibrationArea"),
    (lambda k: ps.reconstruct(k, k, regularizers="l3:0.1"), ValueError, "l3"),
    (lambda k: ps.reconstruct(k, k, regularizers=3), TypeError, "regularizers"),
    (lambda k: ps.reconstruct(k, k, method="magic"), ValueError, "'magic', expected one of 'automatic'"),
    (lambda k: ps.sampling_pattern(8, 8, kind="dense"), ValueError, "'poisson'"),
    (lambda k: ps.density_compensation(k, "best"), ValueError, "'analytic', 'pipe'"),
    (lambda k: ps.whiten(k, None), ValueError, "noise"),
    (lambda k: ps.calibration_area(k), Exception, "bool"),
])
def test_errors(scan, call, error, text):
    with pytest.raises(error, match=text):
        call(scan[3])


def test_callbacks_and_progress(scan, capsys):
    _, maps, mask, kspace = scan
    seen = []
    ps.reconstruct(kspace, maps, mask=mask, max_iterations=4, callback=lambda info: seen.append(info.iteration))
    assert seen == [1, 2, 3, 4]
    ps.reconstruct(kspace, maps, mask=mask, max_iterations=4, progress=lambda info: seen.append(-info.iteration))
    assert seen[4:] == [-1, -2, -3, -4]


@pytest.mark.parametrize("name", ["adjoint", "cg", "fista", "pogm", "primal_dual", "admm", "pocs"])
def test_every_method_is_the_one_of_its_name(scan, name):
    _, maps, mask, kspace = scan
    regularizers = {"adjoint": [], "cg": "l2:0.01"}.get(name, "l1:0.01")
    found = ps.reconstruct(kspace, maps, mask=mask, method=name, regularizers=regularizers, max_iterations=2)
    assert found.method == name.replace("_", "-")


def test_an_image_without_its_phase_is_real(scan):
    image, maps, mask, kspace = scan
    phase = np.linspace(0, 2, maps.shape[-1], dtype="float32") * np.ones(maps.shape[1:], "float32")
    found = ps.reconstruct(kspace, maps * np.exp(-1j * phase), mask=mask, phase=phase, regularizers="l2:0.01")
    np.testing.assert_allclose(found.image, ps.reconstruct(kspace, maps, mask=mask, regularizers="l2:0.01").image, atol=1e-4)
    with pytest.raises(ValueError, match="phase"):
        ps.reconstruct(kspace, maps, mask=mask, phase=phase[1:])


def test_a_basis_gives_the_images_whose_sums_are_the_frames():
    rng = np.random.default_rng(5)
    maps = ps.ring_coil_maps(4, 24, 20)
    basis = np.exp(-np.outer(np.arange(8), [0.05, 0.6])) * [1, 1j]
    mask = rng.random((8, 24, 20)) < 0.5
    image = (rng.standard_normal((2, 24, 20)) + 1j * rng.standard_normal((2, 24, 20))).astype("complex64")
    frames = np.tensordot(basis, image, 1)
    kspace = mask[:, None] * centred_fft(frames[:, None] * maps)
    A = ps.sense_model(maps, mask=mask, basis=basis)
    np.testing.assert_allclose(A(image), kspace, atol=1e-5)
    found = ps.reconstruct(kspace.astype("complex64"), maps, mask=mask, basis=basis, regularizers="l2:0", max_iterations=200, tolerance=0)
    np.testing.assert_allclose(found.image, image, atol=1e-3)
    with pytest.raises(ValueError, match="expected 8 rows"):
        ps.sense_model(maps, mask=mask, basis=basis[:7])


@pytest.mark.parametrize(
    "call",
    [
        lambda k, maps, mask: ps.reconstruct(k, maps, mask=mask),
        lambda k, maps, mask: ps.reconstruct(np.nan_to_num(k), maps * np.nan, mask=mask),
        lambda k, maps, mask: ps.reconstruct(np.nan_to_num(k), maps, mask=mask, start=k[0]),
        lambda k, maps, mask: ps.direct_maps(k),
        lambda k, maps, mask: ps.compress_coils(k, to=2),
        lambda k, maps, mask: ps.brightness_of(k, ps.brightness_area(np.nan_to_num(k))),
        lambda k, maps, mask: ps.noise_covariance(k),
        lambda k, maps, mask: ps.calibration_from(k, np.zeros((N, N, 2), "float32"), 8),
        lambda k, maps, mask: ps.walsh(k),
    ],
)
def test_values_that_are_not_finite_are_refused(scan, call):
    _, maps, mask, kspace = scan
    kspace = kspace.copy()
    kspace[0, N // 2, N // 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite values: got"):
        call(kspace, maps, mask)


def test_masks_of_whole_numbers_are_masks(scan):
    _, maps, mask, kspace = scan
    image = ps.reconstruct(kspace, maps, mask=mask, regularizers="l2:0.01").image
    for dtype in ("uint8", "int32"):
        found = ps.reconstruct(kspace, maps, mask=mask.astype(dtype) * 7, regularizers="l2:0.01")
        np.testing.assert_array_equal(found.image, image)
    np.testing.assert_array_equal(ps.sense_model(maps, mask=mask.astype("uint8") * 255)(scan[0]), kspace)


@pytest.mark.parametrize("method", ["primal_dual", "admm"])
@pytest.mark.parametrize("unit", [1e-28, 1e-20, 1e18, 1e28])
def test_units_of_kspace_do_not_matter(scan, method, unit):
    _, maps, mask, kspace = scan
    how = {"mask": mask, "regularizers": "tv:0.01", "method": method, "max_iterations": 20}
    known = ps.reconstruct(kspace, maps, **how)
    found = ps.reconstruct((kspace * unit).astype("complex64"), maps, **how)
    assert error(found.image / np.float64(unit), known.image) < 1e-3
    objective = found.solve.history.objective[-1] / np.float64(unit) ** 2
    assert objective == pytest.approx(known.solve.history.objective[-1], rel=1e-3, nan_ok=True)
    with pytest.raises(ValueError, match="callback"):
        ps.reconstruct((kspace * unit).astype("complex64"), maps, callback=lambda info: None, **how)


def test_of_two_options_for_one_thing_none_is_ignored(scan):
    kspace = scan[3]
    with pytest.raises(ValueError, match="expected one of them"):
        ps.whiten(kspace, np.eye(6), from_border=True)
    with pytest.raises(ValueError, match="expected one of them"):
        ps.compress_coils(kspace, to=2, energy=0.9)
