# SPDX-License-Identifier: Apache-2.0
"""Streams of MRD 2 as ISMRMRD files."""

import numpy as np
import pytest

import palimpsest as ps

mrd = pytest.importorskip("mrd")
pytestmark = pytest.mark.extras

N, COILS = 16, 3
IMAGE = np.asarray(ps.ellipse_image(ps.modified_shepp_logan(), N, N)).astype("complex64")
MAPS = np.asarray(ps.ring_coil_maps(COILS, N, N))


def header(trajectory=mrd.Trajectory.CARTESIAN, rows=N):
    space = mrd.EncodingSpaceType(matrix_size=mrd.MatrixSizeType(x=N, y=N, z=1),
                                  field_of_view_mm=mrd.FieldOfViewMm(x=240, y=180, z=5))
    limits = mrd.EncodingLimitsType(kspace_encoding_step_1=mrd.LimitType(minimum=0, maximum=rows - 1, center=N // 2))
    encoding = mrd.EncodingType(encoded_space=space, recon_space=space, trajectory=trajectory, encoding_limits=limits)
    return mrd.Header(encoding=[encoding],
                      experimental_conditions=mrd.ExperimentalConditionsType(h1resonance_frequency_hz=63_800_000))


def acquisition(data, step, flags=0, coordinates=None):
    head = mrd.AcquisitionHeader(flags=mrd.AcquisitionFlags(flags),
                                 idx=mrd.EncodingCounters(kspace_encode_step_1=step), sample_time_us=4.0,
                                 center_sample=data.shape[1] // 2, position=np.array([1, 2, 3], "float32"),
                                 read_dir=np.array([1, 0, 0], "float32"), phase_dir=np.array([0, 1, 0], "float32"),
                                 slice_dir=np.array([0, 0, 1], "float32"))
    made = mrd.Acquisition(head=head, data=data)
    if coordinates is not None:
        made.trajectory = coordinates
    return mrd.StreamItem.Acquisition(made)


def file_of(path, head, items):
    with mrd.BinaryMrdWriter(str(path)) as writer:
        writer.write_header(head)
        writer.write_data(items)
    return path


def test_cartesian_readouts(tmp_path):
    kspace = np.asarray(ps.Fft(2, centered=True)(MAPS * IMAGE))
    noise = acquisition(kspace[:, 0] * 0 + 1, 0, int(mrd.AcquisitionFlags.IS_NOISE_MEASUREMENT))
    rows = [acquisition(np.ascontiguousarray(kspace[:, row]), row) for row in range(0, N, 2)]
    source = file_of(tmp_path / "scan.mrd", header(), [noise, *rows])
    assert ps.convert_mrd(source, tmp_path / "scan.h5") == N // 2 + 1
    scan = ps.read_scan(str(tmp_path / "scan.h5"))
    np.testing.assert_array_equal(np.squeeze(scan.kspace)[:, ::2], kspace[:, ::2])
    assert np.squeeze(scan.mask)[::2].all() and not np.squeeze(scan.mask)[1::2].any()
    assert scan.noise.shape == (COILS, N) and scan.voxel_mm[:2] == [15.0, 11.25]
    assert scan.position_mm == [1, 2, 3]


def test_trajectories(tmp_path):
    trajectory = np.asarray(ps.radial_trajectory(spokes=5, samples=N))
    data = np.random.default_rng(0).normal(size=(5, COILS, N)).astype("complex64")
    spokes = [acquisition(data[i], i, coordinates=np.ascontiguousarray(trajectory[i].T).astype("float32"))
              for i in range(5)]
    with mrd.BinaryMrdReader(str(file_of(tmp_path / "a", header(mrd.Trajectory.RADIAL, 5), spokes))) as reader:
        assert ps.convert_mrd(reader, tmp_path / "scan.h5") == 5
    scan = ps.read_scan(str(tmp_path / "scan.h5"))
    np.testing.assert_array_equal(np.squeeze(scan.kspace), data.transpose(1, 0, 2))
    np.testing.assert_allclose(scan.trajectory, trajectory, atol=1e-6)


def test_streams_that_lack_something(tmp_path):
    path = tmp_path / "scan.h5"
    with pytest.raises(ps.FormatError, match="without an Acquisition"):
        ps.convert_mrd(file_of(tmp_path / "a", header(), []), path)
    with pytest.raises(ps.FormatError, match="without a header"):
        ps.convert_mrd(file_of(tmp_path / "b", mrd.Header(), [acquisition(MAPS[:, 0], 0)]), path)
    assert not path.exists()
