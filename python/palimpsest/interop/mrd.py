# SPDX-License-Identifier: Apache-2.0
"""Streams of raw MRI data in the second version of the MRD format, read by the package mrd."""

import os
from typing import Any

import mrd
import numpy as np

from palimpsest import _core

_COUNTERS = ("kspace_encode_step_1", "kspace_encode_step_2", "average", "slice", "contrast", "phase", "repetition",
             "set", "segment")
_DIRECTIONS = ("position", "patient_table_position", "read_dir", "phase_dir", "slice_dir")


def _xyz(v: Any) -> tuple[Any, Any, Any]:
    return v.x, v.y, v.z


def _space(space: Any) -> Any:
    return _xyz(space.matrix_size), _xyz(space.field_of_view_mm)


def _limit(limit: Any) -> Any:
    return limit and (limit.minimum, limit.maximum, limit.center)


def _header(header: Any, coils: int) -> dict[str, Any]:
    """The facts of the first encoding, as those of an ISMRMRD header."""
    if header is None or not header.encoding:
        raise _core.errors.FormatError("[convert_mrd] got a stream without a header, expected one with an encoding.")
    encoding, system = header.encoding[0], header.acquisition_system_information
    limits, parallel = encoding.encoding_limits, encoding.parallel_imaging
    factor = parallel and parallel.acceleration_factor
    mode = parallel and parallel.calibration_mode
    return {
        "encoded": _space(encoding.encoded_space),
        "recon": _space(encoding.recon_space),
        "step_0": _limit(limits.kspace_encoding_step_0),
        "step_1": _limit(limits.kspace_encoding_step_1),
        "step_2": _limit(limits.kspace_encoding_step_2),
        "acceleration": (factor.kspace_encoding_step_1, factor.kspace_encoding_step_2) if factor else (1, 1),
        "calibration_mode": mode.name.lower() if mode and mode != mrd.CalibrationMode.NOACCELERATION else "",
        "trajectory": encoding.trajectory.name.lower(),
        "coils": coils,
        "h1_frequency_hz": float(header.experimental_conditions.h1resonance_frequency_hz),
        "institution": (system and system.institution_name) or "",
    }


def _readout(acquisition: Any) -> dict[str, Any]:
    head = acquisition.head
    coils, samples = acquisition.data.shape
    return {
        "flags": int(head.flags),
        "samples": samples,
        "coils": coils,
        "center_sample": samples // 2 if head.center_sample is None else head.center_sample,
        "discard_pre": head.discard_pre or 0,
        "discard_post": head.discard_post or 0,
        "sample_time_us": float(head.sample_time_us or 0),
        "encoding_space_ref": head.encoding_space_ref or 0,
        "acquisition_time_stamp": head.acquisition_time_stamp or 0,
        "trajectory_axes": len(acquisition.trajectory) if acquisition.trajectory.size else 0,
        **{name: getattr(head.idx, name) or 0 for name in _COUNTERS},
        **{name: [float(v) for v in getattr(head, name)] for name in _DIRECTIONS},
    }


def convert_mrd(source: Any, path: Any) -> int:
    """The ISMRMRD file of a stream; see palimpsest.convert_mrd."""
    if isinstance(source, (str, os.PathLike)):
        with mrd.BinaryMrdReader(os.fspath(source)) as reader:
            return convert_mrd(reader, path)
    header = source.read_header()
    found = [item.value for item in source.read_data() if isinstance(item, mrd.StreamItem.Acquisition)]
    if not found:
        raise _core.errors.FormatError("[convert_mrd] got a stream without an Acquisition, expected readouts.")
    readouts = [_readout(a) for a in found]
    samples = np.concatenate([np.asarray(a.data, "complex64").reshape(-1) for a in found])
    # One sample after the other, its coordinates together.
    coordinates = [np.asarray(a.trajectory, "float32").T.reshape(-1) for a in found if a.trajectory.size]
    _core._write_raw_scan(os.fspath(path), _header(header, readouts[-1]["coils"]), readouts, samples,
                          np.concatenate(coordinates) if coordinates else None)
    return len(readouts)
