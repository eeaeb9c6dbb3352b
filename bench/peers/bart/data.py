# SPDX-License-Identifier: Apache-2.0
"""Makes the data of the comparison, as pairs of BART's format that both programs read."""

import gzip
import os
import struct

import numpy as np

HEAD = "/usr/share/mricron/templates/ch2.nii.gz"
FRAMES = 20


def write_cfl(name, array, extents=None):
    """`array` from slow to fast; `extents` are BART's dimensions where they differ from that."""
    array = np.ascontiguousarray(array, np.complex64)
    extents = list(extents or array.shape[::-1])
    with open(name + ".hdr", "w") as file:
        file.write("# Dimensions\n" + " ".join(map(str, extents + [1] * (16 - len(extents)))) + "\n")
    array.tofile(name + ".cfl")


def read_cfl(name):
    """Slow to fast, without axes of one point."""
    with open(name + ".hdr") as file:
        extents = [int(n) for n in file.read().split("\n")[1].split()]
    array = np.memmap(name + ".cfl", np.complex64, "r")
    return array.reshape([n for n in extents[::-1] if n > 1])


def read_head(path=HEAD):
    """The measured head (z, y, x), its largest voxel 1. NIfTI-1 of one byte a voxel."""
    with gzip.open(path) as file:
        content = file.read()
    extents = struct.unpack_from("<3h", content, 42)
    kind = {2: "<u1", 4: "<i2", 16: "<f4"}[struct.unpack_from("<h", content, 70)[0]]
    start = int(struct.unpack_from("<f", content, 108)[0])
    head = np.frombuffer(content, kind, int(np.prod(extents)), start).reshape(extents[::-1])
    return (head / head.max()).astype(np.float32)


def fft(x, axes):
    """Centred and unitary."""
    x = np.fft.ifftshift(x, axes)
    return np.fft.fftshift(np.fft.fftn(x, axes=axes, norm="ortho"), axes)


def noise(random, shape, deviation):
    """Complex, of this standard deviation."""
    parts = random.standard_normal((2, *shape), np.float32) * np.float32(deviation / np.sqrt(2))
    return parts[0] + 1j * parts[1]


class Data:
    def __init__(self, runner, folder, brain, volume_step):
        self.runner, self.folder, self.brain_file = runner, folder, brain
        self.volume_step = volume_step

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, array, extents=None):
        write_cfl(self.path(name), array, extents)

    def load(self, name):
        return read_cfl(self.path(name))

    def has(self, *names):
        return all(os.path.exists(self.path(name + ".cfl")) for name in names)

    def pattern(self, name, size, acceleration, seed, center=24):
        self.runner.run("ours", ["pattern", name + ".npy", "--size", f"{size[0]},{size[1]}",
                                 "--acceleration", str(acceleration), "--center", str(center),
                                 "--seed", str(seed)])
        return np.load(self.path(name + ".npy"))

    def maps_of(self, kspace, maps):
        self.runner.run("bart", ["ecalib", "-O", "-m1", kspace, maps])

    def brain(self):
        """A measured head, 8 coils, and maps of `ecalib -O`."""
        if not self.brain_file:
            raise FileNotFoundError("no measured head: --brain FILE.npy, complex (coil, y, x)")
        kspace = np.load(self.brain_file)
        self.save("brain", kspace, [*kspace.shape[:0:-1], 1, kspace.shape[0]])
        self.maps_of("brain", "brain_maps")

    def volume(self):
        """The head of mricron-data in 8 coils; 6-fold Poisson along z and y, noise 0.005.

        Padded to even extents: along odd ones `pics` of BART 0.8 moves the image by a point against
        its maps.
        """
        if self.has("volume", "volume_maps"):
            return
        head = read_head()[::self.volume_step, ::self.volume_step, ::self.volume_step]
        head = np.pad(head, [(0, n % 2) for n in head.shape])
        mask = self.pattern("volume_mask", head.shape[:2], 6, 1, 24 // self.volume_step)[:, :, None]
        random = np.random.default_rng(1)
        kspace = np.lib.format.open_memmap(self.path("volume.tmp"), "w+", np.complex64,
                                           (8, *head.shape))
        for i, coil in enumerate(volume_coils(head.shape)):
            samples = fft(head * coil, (0, 1, 2)) + noise(random, head.shape, 0.005)
            kspace[i] = samples * mask
        self.save("volume", kspace)
        os.remove(self.path("volume.tmp"))
        self.maps_of("volume", "volume_maps")

    def ring_maps(self, image):
        """8 ring coils around an image, of the command `simulate`; k-space is not used."""
        np.save(self.path("object.npy"), image)
        self.runner.run("ours", ["simulate", "object.h5", "--image", "object.npy", "--coils", "8",
                                 "--save-maps", "ring.npy"])
        return np.load(self.path("ring.npy"))

    def series(self):
        """20 frames of a slice whose brightness changes with that of the tissue; 6-fold each."""
        image = plane_of_head()
        maps = self.ring_maps(image)
        random = np.random.default_rng(2)
        frames = []
        for t in range(FRAMES):
            frame = image * (1 + 0.4 * np.sin(2 * np.pi * t / FRAMES + 4 * image))
            mask = self.pattern("frame", image.shape, 6, t)
            samples = fft(frame * maps, (1, 2)) + noise(random, maps.shape, 0.01)
            frames.append((samples * mask).astype(np.complex64))
        y, x = image.shape
        self.save("series", np.stack(frames), [x, y, 1, 8, 1, 1, 1, 1, 1, 1, FRAMES])
        self.save("series_maps", maps, [x, y, 1, 8])

    def radial(self):
        """BART's phantom along 33 spokes, 64 x 64 points, 4 coils, maps of unit norm."""
        bart = self.runner.run
        bart("bart", ["traj", "-r", "-x", "64", "-o", "2", "-y", "33", "spokes"])
        bart("bart", ["phantom", "-k", "-s", "4", "-t", "spokes", "radial"])
        bart("bart", ["phantom", "-x", "64", "-S", "4", "sensitivities"])
        maps = np.asarray(self.load("sensitivities"))
        norm = np.sqrt((abs(maps) ** 2).sum(0))
        self.save("radial_maps", maps / np.maximum(norm, 1e-12), [64, 64, 1, 4])

    def koosh(self):
        """The same in 3-D: 2000 spokes of 128 samples, 64^3 points, 8 coils."""
        self.koosh_ball("koosh", 64, 2000)

    def koosh128(self):
        """8000 spokes of 256 samples, 128^3 points, 8 coils. Takes BART six minutes."""
        self.koosh_ball("koosh128", 128, 8000)

    def koosh_ball(self, name, size, spokes):
        if self.has(name, name + "_spokes", name + "_maps"):
            return
        self.runner.run("ours", ["traj", name + "_spokes.cfl", "--kind", "koosh", "--spokes",
                                 str(spokes), "--samples", str(2 * size), "--oversampling", "2"])
        bart = self.runner.run
        bart("bart", ["phantom", "-3", "-k", "-s", "8", "-t", name + "_spokes", name])
        bart("bart", ["phantom", "-3", "-x", str(size), "-S", "8", "sensitivities3"])
        maps = np.asarray(self.load("sensitivities3"))
        norm = np.sqrt((abs(maps) ** 2).sum(0))
        self.save(name + "_maps", maps / np.maximum(norm, 1e-12))


def plane_of_head():
    """The middle slice of the head in 224 x 192 points."""
    head = read_head()
    plane = head[head.shape[0] // 2]
    result = np.zeros((224, 192), np.float32)
    y, x = (224 - plane.shape[0]) // 2, (192 - plane.shape[1]) // 2
    result[y:y + plane.shape[0], x:x + plane.shape[1]] = plane
    return result


def volume_coils(shape):
    """Eight smooth coils on two rings around the volume, root sum of squares 1, one by one."""
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, n, dtype=np.float32) for n in shape],
                          indexing="ij", sparse=True)

    def size(i):
        angle = 2 * np.pi * i / 8
        at = (0.6 if i % 2 == 0 else -0.6, 1.2 * np.sin(angle), 1.2 * np.cos(angle))
        return angle, np.exp(-((z - at[0]) ** 2 + (y - at[1]) ** 2 + (x - at[2]) ** 2) / 1.5)

    norm = np.sqrt(sum(size(i)[1] ** 2 for i in range(8)))
    for i in range(8):
        angle, magnitude = size(i)
        phase = angle + x * np.cos(angle) + y * np.sin(angle)
        yield (magnitude / norm * np.exp(1j * phase)).astype(np.complex64)
