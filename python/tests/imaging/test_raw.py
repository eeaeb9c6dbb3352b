# SPDX-License-Identifier: Apache-2.0
"""Scans read from files, and measures of the difference between images."""

import numpy as np
import pytest

import palimpsest as ps


def scan_file(tmp_path):
    image = ps.ellipse_image(ps.modified_shepp_logan(), 32, 32).astype("complex64")
    mask = ps.sampling_pattern(32, 32, acceleration=2, center=12, seed=1)
    A = ps.sense_model(ps.ring_coil_maps(4, 32, 32), mask=mask)
    np.save(tmp_path / "kspace.npy", A(image))
    return image, mask, str(tmp_path / "kspace.npy")


def test_read_scan(tmp_path):
    image, mask, path = scan_file(tmp_path)
    scan = ps.read_scan(path)
    assert scan.kspace.shape == (1, 1, 4, 1, 32, 32) and scan.kspace.dtype == "complex64"
    np.testing.assert_array_equal(scan.mask[0, 0, 0], mask)
    assert scan.trajectory is None and scan.noise is None and scan.calibration is None
    assert scan.slices == [0] and scan.frames == [] and scan.image_shape == (32, 32)
    assert scan.acceleration == pytest.approx(32 * 32 / mask.sum())
    assert list(scan.voxel_mm) == [1, 1, 1] and len(scan.directions) == 3 and scan.header_xml == ""
    kspace = scan.kspace[0, 0, :, 0]
    maps = ps.espirit(kspace).maps[0]
    found = ps.reconstruct(kspace, maps, mask=mask, max_iterations=20).image
    assert ps.image_quality(image, found).nrmse < 0.15


def test_options_are_checked(tmp_path):
    path = scan_file(tmp_path)[2]
    with pytest.raises(ValueError, match="'none', 'contrast'"):
        ps.read_scan(path, as_="slices")
    with pytest.raises(TypeError, match="unknown option 'slices'"):
        ps.read_scan(path, slices=3)
    with pytest.raises(ValueError, match="no such file"):
        ps.read_scan(str(tmp_path / "none.npy"))


def test_image_quality():
    rng = np.random.default_rng(0)
    image = rng.random((16, 16)) + 1.0
    same = ps.image_quality(image, image)
    assert same.nrmse == 0 and same.ssim == pytest.approx(1) and np.isinf(same.psnr_db)
    noisy = image + 0.1 * rng.standard_normal(image.shape)
    found = ps.image_quality(image, noisy, fit=False, mask=np.ones((16, 16), bool))
    assert found.points == 256 and found.factor == 1
    assert found.nrmse == pytest.approx(np.linalg.norm(noisy - image) / np.linalg.norm(image))
    turned = ps.image_quality(image + 0j, 1j * image, complex=True)
    assert turned.factor == pytest.approx(-1j) and turned.nrmse < 1e-6
    assert ps.quality_mask(image).all()
    assert isinstance(ps.ssim_map(image, ps.asarray(noisy)), ps.Tensor)
    with pytest.raises(ps.ShapeError, match="shape"):
        ps.image_quality(image, noisy[:8])
