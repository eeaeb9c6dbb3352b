#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parallel reconstruction whose coils are dealt out to ranks, beside PyLops-MPI.

Both solve |A x - b| with 10 iterations of CGLS: A multiplies an image with the maps of the coils and
transforms each product, every rank has its coils and all ranks have the image. They run by turns.
Printed, as Markdown: medians of the time, bytes that each rank gives to MPI (count_mpi.c, by the
profiling interface), the most resident memory above that before a run, lines of the program, and the distance
of the images.

    cc -shared -fPIC -O2 $(mpicc --showme:compile) bench/peers/count_mpi.c -o count_mpi.so
    mpirun -n 2 -x LD_PRELOAD=$PWD/count_mpi.so -x PALIMPSEST_FLAGS=threads=1 -x OMP_NUM_THREADS=1 \\
        python bench/peers/pylops_mpi_sense.py [--size 512] [--coils 8] [--repeat 5]

Environment: palimpsest, mpi4py, pylops-mpi and NumPy.
"""

import argparse
import ctypes
import inspect
import statistics

import numpy as np
import palimpsest as ps
import pylops
import pylops_mpi
from mpi4py import MPI

ITERATIONS = 10


def with_palimpsest(maps, own, data):
    team = ps.Team.world()
    mine = ps.Dense(maps, "C Nx Ny, Nx Ny -> C Nx Ny") | ps.Fft(2, batch="C")
    part = ps.join_parts(mine, team, {"C": "rank"})
    return ps.cgls(part, data, max_iterations=ITERATIONS, tolerance=0).x


def with_pylops_mpi(maps, own, data):
    n = maps.shape[1:]
    fourier = pylops.signalprocessing.FFT2D(dims=n, norm="ortho", dtype=np.complex128)
    mine = pylops.VStack([fourier * pylops.Diagonal(m.ravel()) for m in maps])
    part = pylops_mpi.MPIVStack(ops=[mine])
    shapes = MPI.COMM_WORLD.allgather((data.size,))
    b = pylops_mpi.DistributedArray(sum(s[0] for s in shapes), local_shapes=shapes,
                                    dtype=np.complex128)
    b[:] = data.ravel()
    x0 = pylops_mpi.DistributedArray(n[0] * n[1], partition=pylops_mpi.Partition.BROADCAST,
                                     dtype=np.complex128)
    x0[:] = 0
    return pylops_mpi.cgls(part, b, x0=x0, niter=ITERATIONS, tol=0)[0].local_array.reshape(n)


def memory(name):
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))


def highest_memory_from_here():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def counter():
    library = ctypes.CDLL(None)
    if not hasattr(library, "bytes_given_to_mpi"):
        return lambda: (0, 0)
    library.bytes_given_to_mpi.restype = library.calls_of_mpi.restype = ctypes.c_longlong
    return lambda: (library.bytes_given_to_mpi(), library.calls_of_mpi())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--coils", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    random = np.random.default_rng(1)
    shape = (options.coils, options.size, options.size)
    own = ps.part_range(options.coils, comm.rank, comm.size)
    maps = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    maps = np.ascontiguousarray(maps[own.start : own.stop])
    image = random.standard_normal(shape[1:]) + 1j * random.standard_normal(shape[1:])
    data = np.fft.fft2(maps * image, norm="ortho")

    programs = {"Palimpsest": with_palimpsest, "PyLops-MPI": with_pylops_mpi}
    count, results, rows = counter(), {}, {name: [] for name in programs}
    for _ in range(options.repeat):
        for name, run in programs.items():
            comm.Barrier()
            highest_memory_from_here()
            before, resident, start = count(), memory("VmRSS"), MPI.Wtime()
            results[name] = np.asarray(run(maps, own, data))
            passed, after = MPI.Wtime() - start, count()
            rows[name].append((passed, after[0] - before[0], after[1] - before[1],
                               memory("VmHWM") - resident))
    if comm.rank != 0:
        return
    a, b = results.values()
    print(f"{shape[0]} coils of {shape[1]} x {shape[2]}, complex128, {comm.size} ranks, "
          f"{ITERATIONS} iterations; the images differ by "
          f"{np.linalg.norm(a - b) / np.linalg.norm(b):.1e}\n")
    print("| | seconds | bytes given to MPI | calls | memory above | lines |")
    print("|---|---|---|---|---|---|")
    for name, run in programs.items():
        seconds, sent, calls, _ = (statistics.median(column) for column in zip(*rows[name]))
        above = max(row[-1] for row in rows[name])
        lines = len(inspect.getsource(run).strip().splitlines())
        print(f"| {name} | {seconds:.3f} | {sent:,.0f} | {calls:.0f} | {above / 1e6:.1f} MB "
              f"| {lines} |")


if __name__ == "__main__":
    main()
