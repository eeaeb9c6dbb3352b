#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Raw scans whose slices differ, written by the package ismrmrd, beside the truth and `bart pics`.

Each scan is an object in millimetres, seen by coils, sampled by exact sums. The command
reconstructs it; then the image, the affine of NIfTI (read by nibabel), the header of every ISMRMRD
image (read by ismrmrd) and the aspect of the PNG are compared with the truth. Prints a table in
Markdown and exits with 1 if something differs:

    bench/peers/raw_scans.py COMMAND [--folder DIR] [--filter TEXT]

Environment: numpy, ismrmrd, nibabel, pillow; `bart` on the path for its column.
"""

import argparse
import functools
import math
import pathlib
import shutil
import subprocess
import sys

import h5py
import ismrmrd
import ismrmrd.xsd as xsd
import nibabel
import numpy as np
from PIL import Image

COILS = 5
AXIAL = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
CORONAL = ((1, 0, 0), (0, 0, -1), (0, 1, 0))
SAGITTAL = ((0, 1, 0), (0, 0, -1), (1, 0, 0))
RNG = np.random.default_rng(5)


def oblique(a=0.3, b=0.2):
    """Directions turned about two axes."""
    x = np.array((math.cos(a), 0, -math.sin(a)))
    y = np.array((math.sin(a) * math.sin(b), math.cos(b), math.cos(a) * math.sin(b)))
    return tuple(map(tuple, (x, y, np.cross(x, y))))


# -- the object ------------------------------------------------------------------------------------


def object_at(x, y, slice_number):
    def inside(cx, cy, rx, ry):
        return ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1

    shift = 4.0 * (slice_number % 3)
    value = inside(6 + shift, -4, 66, 82) * 1.0 - 0.4 * inside(20, -10, 20, 35)
    value = value + 0.5 * inside(-30, 30 - shift, 12, 12)
    return value + 0.8 * inside(150, 10, 25, 40) + 0.8 * inside(-10, 126, 40, 16)


def coil_at(c, x, y):
    angle = 2 * np.pi * c / COILS
    square = (x - 160 * np.cos(angle)) ** 2 + (y - 160 * np.sin(angle)) ** 2
    return np.exp(1j * (angle + x / 150 - y / 200)) / (1 + square / 25000)


def pixels(space, slice_number, parts=6):
    """Means of the object over the pixels, (y, x)."""
    (nx, ny), (wx, wy) = space
    sub = (np.arange(parts) + 0.5) / parts - 0.5
    x = ((np.arange(nx) - nx // 2)[:, None] + sub).ravel() * wx / nx
    y = ((np.arange(ny) - ny // 2)[:, None] + sub).ravel() * wy / ny
    fine = object_at(x[None, :], y[:, None], slice_number)
    return fine.reshape(ny, parts, nx, parts).mean((1, 3))


def transform_at(kx, ky, slice_number, fields):
    """k-space (coil, ..) at pairs (on a grid: outer) of frequencies in cycles per field of view."""
    step, reach = 2.0, 200
    p = np.arange(-reach, reach, step)
    value = object_at(p[None, :], p[:, None], slice_number)
    ex = np.exp(-2j * np.pi * np.outer(p, kx) / fields[0])
    ey = np.exp(-2j * np.pi * np.outer(ky, p) / fields[1])
    grid = np.meshgrid(p, p)
    return np.stack([ey @ (value * coil_at(c, *grid)) @ ex for c in range(COILS)]) * step**2


@functools.cache
def kspace(space, slice_number):
    (nx, ny), fields = space
    # Beyond the encoded field of view an object folds: there is none.
    k = transform_at(np.arange(nx) - nx // 2, np.arange(ny) - ny // 2, slice_number, fields)
    return (k * math.sqrt(nx * ny) / (fields[0] * fields[1])).astype(np.complex64)


# -- files -----------------------------------------------------------------------------------------


def header(case):
    h = xsd.ismrmrdHeader(
        experimentalConditions=xsd.experimentalConditionsType(H1resonanceFrequency_Hz=128000000))
    h.acquisitionSystemInformation = xsd.acquisitionSystemInformationType(receiverChannels=COILS)

    def space(s):
        (nx, ny), (wx, wy) = s
        return xsd.encodingSpaceType(
            matrixSize=xsd.matrixSizeType(x=nx, y=ny, z=1),
            fieldOfView_mm=xsd.fieldOfViewMm(x=wx, y=wy, z=case["thickness"]),
        )

    limits = xsd.encodingLimitsType()
    ny = case["encoded"][0][1]
    limits.kspace_encoding_step_1 = xsd.limitType(minimum=0, maximum=ny - 1, center=ny // 2)
    encoding = xsd.encodingType(
        encodedSpace=space(case["encoded"]),
        reconSpace=space(case["recon"]),
        encodingLimits=limits,
        trajectory=xsd.trajectoryType(case["trajectory"]),
    )
    if case["calibration_mode"]:
        encoding.parallelImaging = xsd.parallelImagingType(
            accelerationFactor=xsd.accelerationFactorType(
                    kspace_encoding_step_1=2, kspace_encoding_step_2=1),
            calibrationMode=xsd.calibrationModeType(case["calibration_mode"]),
        )
    h.encoding.append(encoding)
    return h.toXML("utf-8")


def write_scan(path, case):
    path.unlink(missing_ok=True)
    data = ismrmrd.Dataset(str(path), "dataset", create_if_needed=True)
    data.write_xml_header(header(case))
    for part in case["slices"]:
        k = part["kspace"]
        for line in part["lines"]:
            samples = k[:, line["y"], :]
            if line.get("backwards"):
                samples = samples[:, ::-1]
            a = ismrmrd.Acquisition.from_array(np.ascontiguousarray(samples), line.get("at"))
            a.center_sample = samples.shape[1] // 2
            a.idx.kspace_encode_step_1 = line["y"]
            a.idx.slice, a.idx.repetition = part["number"], line.get("repetition", 0)
            a.idx.contrast = line.get("contrast", 0)
            a.position[:] = np.add(part["position"], line.get("moved", 0))
            a.read_dir[:], a.phase_dir[:], a.slice_dir[:] = part["directions"]
            a.patient_table_position[:] = part["table"]
            a.acquisition_time_stamp = int(line.get("time", part["time"]))
            a.physiology_time_stamp[0] = part["physiology"]
            a.sample_time_us = 4
            for flag in line.get("flags", ()):
                a.set_flag(flag)
            data.append_acquisition(a)
    data.close()


def lines(ny, step=1, first=0, last=None, centre=(0, 0), **more):
    chosen = [y for y in range(first, last or ny) if y % step == 0 or centre[0] <= y < centre[1]]
    return [dict(y=y, **more) for y in chosen]


def case(encoded=((96, 64), (300, 200)), recon=None, n=3, trajectory="cartesian", **more):
    recon = recon or ((64, 64), (200, 200))
    result = dict(encoded=encoded, recon=recon, trajectory=trajectory, calibration_mode="",
                  thickness=4.0, arguments=[], weight=0.0001, error=0.17, says="", refused="", frames=1,
                  bart=False)
    result.update({k: v for k, v in more.items() if k in result})
    result["slices"] = []
    for s in range(n):
        part = dict(number=s, position=(3, -5, 8.0 * s), directions=AXIAL, table=(0, 0, 0), time=0,
                    physiology=0, lines=lines(encoded[0][1]))
        for key, value in more.items():
            if key in part:
                part[key] = value(s) if callable(value) else value
        part["kspace"] = kspace(encoded, part["number"])
        result["slices"].append(part)
    return result


def turn(k, a=0.6, b=0.05):
    """The phase that echoes of EPI have when they are read backwards."""
    n = k.shape[-1]
    image = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(k, -1)), -1)
    image = image * np.exp(1j * (a + b * (np.arange(n) - n // 2)))
    return np.fft.fftshift(np.fft.fft(np.fft.ifftshift(image, -1)), -1).astype(np.complex64)


def epi(with_navigators, **more):
    """Echo planar scans; odd echoes have another phase and are stored backwards."""
    c = case(trajectory="epi", **more)
    reverse, correction = ismrmrd.ACQ_IS_REVERSE, ismrmrd.ACQ_IS_PHASECORR_DATA
    for part in c["slices"]:
        k = part["kspace"]
        ny, middle = k.shape[1], k.shape[1] // 2
        # Line ny is the middle one as it comes backwards.
        k = np.concatenate((k, turn(k[:, middle : middle + 1])), 1)
        for y in range(1, ny, 2):
            k[:, y] = turn(k[:, y])
        part["kspace"] = k
        part["lines"] = []
        if part["number"] in with_navigators:
            even, odd = (middle, ny) if middle % 2 == 0 else (middle - 1, middle)
            part["lines"] += [dict(y=even, flags=[correction]),
                              dict(y=odd, flags=[correction, reverse], backwards=True),
                              dict(y=even, flags=[correction])]
        part["lines"] += [dict(y=y, flags=[reverse] if y % 2 else [], backwards=bool(y % 2))
                          for y in range(ny)]
    return c


def radial(spokes=60, n=1, factor=1.0, time=0, frames=1, **more):
    """Spokes of golden angles over the recon space, whose field of view is the encoded one."""
    space = ((96, 96), (300, 300))
    c = case(space, ((96, 96), (300, 300)), n, "radial", frames=frames, **more)
    angles = np.radians(111.2461 * np.arange(spokes))[:, None]
    r = (np.arange(192) - 96) / 2
    k = np.stack((r * np.cos(angles), r * np.sin(angles)), -1)
    for part in c["slices"]:
        samples = transform_points(k.reshape(-1, 2), part["number"], space)
        part["kspace"] = samples.reshape(COILS, spokes, r.size).astype(np.complex64)
        part["lines"] = [dict(y=i, time=part["time"] + time * i, at=np.float32(k[i] * factor))
                         for i in range(spokes)]
    return c


def transform_points(k, slice_number, space):
    (nx, ny), (wx, wy) = space
    p = np.arange(-200, 200, 4.0)
    grid = np.meshgrid(p, p)
    value = object_at(*grid, slice_number)
    coils = np.stack([value * coil_at(c, *grid) for c in range(COILS)])
    ex = np.exp(-2j * np.pi * np.outer(k[:, 0] / wx, p))
    ey = np.exp(-2j * np.pi * np.outer(k[:, 1] / wy, p))
    sums = np.einsum("ky,cky->ck", ey, np.einsum("kx,cyx->cky", ex, coils, optimize=True))
    return sums * 16 * math.sqrt(nx * ny) / (wx * wy)


# -- the scans -------------------------------------------------------------------------------------


def all_cases():
    wide, tall = ((128, 64), (400, 200)), ((128, 72), (400, 300))
    square = ((64, 64), (200, 200))
    calibration = [ismrmrd.ACQ_IS_PARALLEL_CALIBRATION]
    # The table has fields of view of 200 mm along y: without the object beyond.
    no_fold = dict(encoded=((128, 96), (400, 300)))
    half = lambda ny: lines(ny, 2, centre=(ny // 2 - 12, ny // 2 + 12))
    yield "space: phase oversampling, 75 % resolution", case(tall, square, bart=True)
    yield "space: the same, zero-filled twice", case(tall, ((128, 128), (200, 200)), error=0.2, bart=True)
    yield "space: the same, 32 pixels", case(tall, ((32, 32), (200, 200)), bart=True)
    yield "space: the same, --matrix encoded", case(
        tall, ((64, 48), (200, 200)), arguments=["--matrix", "encoded"], bart=True)
    yield "space: no whole number of pixels", case(((128, 96), (410, 310)), square, bart=True)
    yield "space: odd numbers", case(((127, 95), (400, 300)), ((63, 61), (200, 190)), bart=True)
    yield "space: rectangular", case(((128, 96), (400, 300)), ((80, 60), (200, 150)), bart=True)
    yield "space: undersampled, oversampled, zero-filled", case(
        tall, ((96, 96), (200, 200)), lines=half(72), error=0.2, bart=True)
    yield "space: --fov 240x180", case(
        no_fold["encoded"], ((80, 60), (240, 180)), arguments=["--fov", "240x180", "--matrix", "80x60"])
    yield "space: larger than encoded", case(
        ((128, 96), (400, 300)), ((144, 96), (450, 300)), says="larger than the encoded")
    yield "space: one pixel size, all cut", case(no_fold["encoded"], square, bart=True)

    yield "place: three planes", case(
        tall, square, directions=lambda s: (AXIAL, CORONAL, SAGITTAL)[s], position=(0, 0, 0),
        says="a file for each")
    yield "place: oblique stack", case(
        tall, square, 4, directions=oblique(),
        position=lambda s: tuple(np.array((3, -5, 8)) + 6.0 * s * np.array(oblique()[2])))
    yield "place: unequal distances", case(
        tall, square, position=lambda s: (0, 0, (0, 10, 15)[s]), says="a file for each")
    yield "place: from head to feet", case(tall, square, position=lambda s: (0, 0, -7.5 * s))
    yield "place: interleaved counters", case(
        tall, square, 4, position=lambda s: (0, 0, (0, 16, 8, 24)[s]), says="a file for each")
    yield "place: turned within the plane", case(
        tall, square, directions=lambda s: tuple(
            map(tuple, ((math.cos(s), math.sin(s), 0), (-math.sin(s), math.cos(s), 0), (0, 0, 1)))),
        says="a file for each")
    yield "place: coronal", case(tall, square, directions=CORONAL, position=lambda s: (0, 9.0 * s, 4))
    yield "place: sagittal", case(tall, square, directions=SAGITTAL, position=lambda s: (5 - 9.0 * s, 0, 4))
    yield "place: slices 0, 2, 4", case(
        tall, square, number=lambda s: 2 * s, position=lambda s: (0, 0, 8.0 * s), says="slice numbers")
    yield "place: all at one position", case(
        tall, square, position=(1, 2, 3), says="all slices are at one position")
    yield "place: no directions", case(
        tall, square, directions=((0, 0, 0),) * 3, says="no place in space")
    yield "place: moved within slice 1", moved_within(case(tall, square))

    yield "table: moves from slice to slice", case(
        tall, square, table=lambda s: (0, 0, -30.0 * s), says="table positions")
    yield "times: of slices", case(tall, square, time=lambda s: 1000 * s, says="time stamps of slices")
    yield "times: of lines", line_times(case(tall, square))
    yield "times: physiology", case(
        tall, square, physiology=lambda s: 70 + s, says="time stamps of physiology")
    yield "times: repetitions", frames(case(tall, square, 2), "repetition", [0, 1000, 2000])
    yield "times: uneven repetitions", frames(
        case(tall, square, 2, says="uneven times of frames"), "repetition", [0, 1000, 5000])
    yield "times: contrasts", frames(case(tall, square, 2), "contrast", [0, 40, 80])
    yield "times: frames along spokes", radial(
        90, time=7, frames=3, arguments=["--frames", "30"], weight=0.01, error=0.5)

    yield "lines: slice 1 lacks calibration", case(
        tall, square, lines=lambda s: lines(72, 2) if s == 1 else half(72),
        refused="of slice 1 is too small")
    yield "lines: the same, --share-maps", case(
        tall, square, lines=lambda s: lines(72, 2) if s == 1 else half(72),
        arguments=["--share-maps"], error=0.22, says="slice 1 takes the coil maps of slice 0")
    yield "lines: slice 2 was aborted", case(
        tall, square, lines=lambda s: lines(72, last=38) if s == 2 else lines(72),
        refused="of slice 2 is too small")
    yield "lines: another pattern in each slice", case(
        tall, square, lines=lambda s: lines(72, s + 1, centre=(24, 48)), error=0.22)
    yield "lines: calibration apart in each slice", case(
        tall, square, calibration_mode="separate",
        lines=lambda s: lines(72, first=24, last=48, flags=calibration) + lines(72, 2))
    yield "lines: calibration apart in slice 0 only", case(
        tall, square, calibration_mode="separate",
        lines=lambda s: (lines(72, first=24, last=48, flags=calibration) if s == 0 else [])
        + lines(72, 2 if s == 0 else 1))
    yield "lines: partial Fourier in slice 1", case(
        tall, square, lines=lambda s: lines(72, last=52) if s == 1 else lines(72),
        arguments=["--partial", "pocs"], error=0.25)
    yield "navigators: in each slice", epi((0, 1, 2), encoded=tall, recon=square, error=0.19)
    yield "navigators: not in slice 1", epi(
        (0, 2), encoded=tall, recon=square, error=9, says="no phase correction of slice 1")
    yield "units: radians per pixel", radial(factor=2 * math.pi / 96, error=9, says="units?")
    yield "units: cycles per mm", radial(factor=1 / 300, error=9, says="units?")
    yield "units: zeros", radial(factor=0, refused="coordinates of its readouts are 0")
    yield "units: cycles per field of view", radial(100, n=2, error=0.3)


def moved_within(c):
    for line in c["slices"][1]["lines"][50:]:
        line["moved"] = (4, 0, 0)
    c["says"] = "different places in slice 1"
    return c


def line_times(c):
    for part in c["slices"]:
        for line in part["lines"]:
            line["time"] = 500 * part["number"] + line["y"]
        part["time"] = 500 * part["number"] + 36  # of the middle line
    c["says"] = "time stamps of slices"
    return c


def frames(c, counter, times):
    c["frames"], c["arguments"] = len(times), ["--as", f"T={counter}"]
    c["counter"], c["times"] = counter, times
    for part in c["slices"]:
        part["lines"] = [dict(line, time=t, **{counter: i}) for i, t in enumerate(times)
                         for line in part["lines"]]
    return c


# -- comparisons -----------------------------------------------------------------------------------


def nrmse(image, truth):
    image = np.abs(image)
    factor = (image * truth).sum() / max((image**2).sum(), 1e-30)
    return np.linalg.norm(factor * image - truth) / np.linalg.norm(truth)


def resampled(image, c):
    """The image (y, x) of the encoded space in the recon space, by its frequencies."""
    for axis in (0, 1):
        n, fov = c["encoded"][0][1 - axis], c["encoded"][1][1 - axis]
        m, wanted = c["recon"][0][1 - axis], c["recon"][1][1 - axis]
        spacing = wanted / m / (fov / n)
        k = np.arange(n) - n // 2
        kept = np.abs(k + 0.25) < n / spacing / 2 if spacing > 1 else np.ones(n, bool)
        to_k = np.exp(-2j * np.pi * np.outer(k, k) / n) / n
        x = (np.arange(m) - m // 2) * spacing
        to_x = np.exp(2j * np.pi * np.outer(x, k * kept) / n) * kept
        image = np.moveaxis(np.tensordot(to_x @ to_k, image, (1, axis)), 0, axis)
    return image


def write_cfl(path, array):
    path.with_suffix(".hdr").write_text(
        "# Dimensions\n" + " ".join(map(str, array.shape[::-1])) + "\n")
    np.ascontiguousarray(array, np.complex64).tofile(path.with_suffix(".cfl"))


def bart_error(folder, c):
    """The mean error of `bart pics` over the slices, with maps of `bart ecalib`."""
    errors = []
    for part in c["slices"]:
        k = np.zeros_like(part["kspace"])
        for line in part["lines"]:
            k[:, line["y"]] = part["kspace"][:, line["y"]]
        write_cfl(folder / "bk", k[:, None])
        for words in (["ecalib", "-m1", "bk", "bm"], ["pics", "-l2", "-r0.0001", "bk", "bm", "bx"]):
            subprocess.run(["bart", *words], cwd=folder, check=True, capture_output=True)
        x = np.fromfile(folder / "bx.cfl", np.complex64).reshape(k.shape[1:])
        errors.append(nrmse(resampled(x, c), pixels(c["recon"], part["number"])))
    return np.mean(errors)


def affine_of(c, part, step=None):
    """RAS of voxel (i, j, k), out of the header."""
    (nx, ny), (wx, wy) = c["recon"]
    x, y, z = np.array(part["directions"], float)
    columns = [x * wx / nx, y * wy / ny, z * c["thickness"] if step is None else step]
    offset = np.array(part["position"], float) - columns[0] * (nx // 2) - columns[1] * (ny // 2)
    lps = np.column_stack((*columns, offset))
    return np.diag((-1, -1, 1)) @ lps


def check_images(folder, c):
    image = np.load(folder / "x.npy").reshape(
        (len(c["slices"]), c["frames"], *c["recon"][0][::-1]))
    return max(nrmse(image[s, t], pixels(c["recon"], part["number"]))
               for s, part in enumerate(c["slices"]) for t in range(c["frames"]))


def check_nifti(folder, c, faults):
    parts = c["slices"]
    if not np.any(parts[0]["directions"]):
        return
    files = sorted(folder.glob("x_slice*.nii")) or [folder / "x.nii"]
    positions = np.array([p["position"] for p in parts], float)
    step = positions[1] - positions[0] if len(parts) > 1 and len(files) == 1 else None
    if step is not None and not step.any():
        step = None
    if len(files) > 1 and len(files) != len(parts):
        faults.append(f"{len(files)} NIfTI for {len(parts)} slices")
    for file, part in zip(files, parts):
        volume = nibabel.load(file)
        wrong = np.abs(volume.affine[:3] - affine_of(c, part, step)).max()
        if wrong > 1e-3:
            faults.append(f"affine of {file.name}: {wrong:.3g} mm")
    if c["frames"] > 1 and "times" in c:
        times = c["times"]
        wanted = 2.5e-3 * (times[-1] - times[0]) / (len(times) - 1)
        if abs(nibabel.load(files[0]).header["pixdim"][4] - wanted) > 1e-4:
            faults.append("time step of NIfTI")


def check_heads(folder, c, faults):
    with h5py.File(folder / "x.mrd") as file:
        heads = file["dataset/image_0/header"][:]
    n = len(c["slices"]) * c["frames"]
    if len(heads) != n:
        faults.append(f"{len(heads)} images, expected {n}")
    by_number = {p["number"]: p for p in c["slices"]}
    for i, head in enumerate(heads):
        part, t = by_number.get(int(head["slice"])), i // len(c["slices"])
        if part is None:
            faults.append(f"image {i}: slice {head['slice']}")
            continue
        wanted = dict(position=part["position"], patient_table_position=part["table"])
        wanted.update(zip(("read_dir", "phase_dir", "slice_dir"), part["directions"]))
        wanted["field_of_view"] = (*c["recon"][1], c["thickness"])
        for name, value in wanted.items():
            if np.abs(np.array(head[name]) - np.array(value, float)).max() > 1e-3:
                faults.append(f"{name} of image {i}: {list(head[name])}")
        time = c["times"][t] if "times" in c else part["time"]
        if c["trajectory"] != "radial" and head["acquisition_time_stamp"] != time:
            faults.append(f"time of image {i}: {head['acquisition_time_stamp']}, not {time}")
        if c["trajectory"] == "radial" and head["acquisition_time_stamp"] != 210 * t:
            faults.append(f"time of frame {t}: {head['acquisition_time_stamp']}")
        if head["physiology_time_stamp"][0] != part["physiology"]:
            faults.append(f"physiology of image {i}")
        if "counter" in c and head[c["counter"]] != t:
            faults.append(f"{c['counter']} of image {i}: {getattr(head, c['counter'])}")


def check_picture(folder, c, faults):
    with Image.open(folder / "one.png") as picture:
        width, height = picture.size
    (wx, wy) = c["recon"][1]
    if c["slices"][0]["directions"] == SAGITTAL and width * wy != height * wx:
        width, height = height, width  # turned
    if abs(width / height / (wx / wy) - 1) > 0.03:
        faults.append(f"picture of {width} x {height} for {wx:g} x {wy:g} mm")


def run(command, folder, c):
    """Error, and the faults."""
    faults = []
    for file in folder.iterdir():
        file.unlink()
    write_scan(folder / "scan.h5", c)

    def recon(*more):
        weight = str(c["weight"])
        return subprocess.run([command, "recon", "scan.h5", "--lambda", weight, *c["arguments"], *more],
                              cwd=folder, capture_output=True, text=True)

    first = recon("--save", "x.npy")
    if c["refused"]:
        if first.returncode != 2 or c["refused"] not in first.stderr:
            faults.append("not refused: " + first.stderr.strip())
        return math.nan, faults
    if first.returncode != 0:
        return math.nan, [first.stderr.strip()]
    error = check_images(folder, c)
    if error > c["error"]:
        faults.append(f"NRMSE {error:.3f}")
    text = first.stdout
    text += recon("-o", "x.nii", "--save", "x.mrd").stdout
    # A slice that is measured on both sides has no use for --partial.
    shown = c["slices"][1 if "--partial" in c["arguments"] else 0]["number"]
    recon("-o", "one.png", "--slice", str(shown))
    if c["says"] not in text:
        faults.append("not said: " + c["says"])
    check_nifti(folder, c, faults)
    check_heads(folder, c, faults)
    if c["frames"] == 1:
        check_picture(folder, c, faults)
    return error, faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("raw_scans"))
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    command = str(pathlib.Path(options.command).resolve())
    n_wrong = n = 0
    print("| scan | NRMSE | `bart pics` | image, NIfTI, ISMRMRD, PNG |\n|---|---|---|---|")
    for name, c in all_cases():
        if options.filter not in name:
            continue
        error, faults = run(command, folder, c)
        n, n_wrong = n + 1, n_wrong + bool(faults)
        with_bart = c["bart"] and shutil.which("bart") is not None
        theirs = f"{bart_error(folder, c):.3f}" if with_bart else "–"
        result = "; ".join(faults) if faults else "refused by name" if c["refused"] else "right"
        print(f"| {name} | {'–' if math.isnan(error) else f'{error:.3f}'} | {theirs} | {result} |",
              flush=True)
    print(f"\n{n - n_wrong} of {n} right")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
