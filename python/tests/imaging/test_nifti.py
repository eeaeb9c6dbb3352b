# SPDX-License-Identifier: Apache-2.0
"""Images that the command writes, read by another package."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import palimpsest as ps
import pytest


def command():
    beside = Path(ps.__file__).resolve().parents[2] / "palimpsest"
    found = str(beside) if beside.is_file() else shutil.which("palimpsest")
    if found is None:
        pytest.skip("the command is not installed")
    return found


def test_nibabel_finds_voxels_where_the_scan_has_them(tmp_path):
    nibabel = pytest.importorskip("nibabel")

    def run(*words):
        subprocess.run([command(), *words], cwd=tmp_path, check=True, capture_output=True)

    run("simulate", "scan.h5", "--size", "48", "--coils", "4", "--center", "16")
    run("recon", "scan.h5", "-o", "image.nii.gz", "--save", "image.npy", "--iterations", "5")
    opened = nibabel.load(tmp_path / "image.nii.gz")
    # x is the readout, through the slice; y runs to the left, z to the back.
    assert opened.shape == (1, 48, 48)
    image = np.load(tmp_path / "image.npy")
    assert np.array_equal(np.asarray(opened.dataobj)[0], image.T)
    assert nibabel.aff2axcodes(opened.affine) == ("S", "L", "P")
    assert np.allclose(opened.affine @ [0, 24, 24, 1], [0, 0, 0, 1], atol=1e-3)
    assert np.allclose(opened.affine @ [0, 24 + 3, 24 - 2, 1], [-3, 2, 0, 1], atol=1e-3)
    assert np.allclose(opened.get_sform(), opened.get_qform(), atol=1e-5)
    assert int(opened.header["sform_code"]) == 1
