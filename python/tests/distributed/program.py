# SPDX-License-Identifier: Apache-2.0
"""The program of every rank in test_ranks.py. It prints `ok` and its rank for each part that passes."""

import sys

import numpy as np

import palimpsest as ps

TEAM = ps.Team.world()
N_COILS, EXTENT = 5, 12


def random(shape, seed):
    values = np.random.default_rng(seed)
    return values.normal(size=shape) + 1j * values.normal(size=shape)


MAPS = random((N_COILS, EXTENT, EXTENT), 1)
IMAGE = random((EXTENT, EXTENT), 2)
A = ps.Dense(MAPS, "C Nx Ny, Nx Ny -> C Nx Ny") | ps.Fft(2, batch="C")


def same(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-12)


def coils():
    part = ps.distribute(A, TEAM, {"C": "rank"})
    own = slice(*own_range(N_COILS))
    same(part(IMAGE), A(IMAGE)[own])
    same(part.H(A(IMAGE)[own]), A.N(IMAGE))
    solution = ps.conjugate_gradients(part.N, IMAGE, max_iterations=6, tolerance=0.0)
    same(solution.x, ps.conjugate_gradients(A.N, IMAGE, max_iterations=6, tolerance=0.0).x)
    # The announced peak of this rank, its messages included, equals the measured one.
    planned = part.N.plan(IMAGE)
    x = ps.asarray(IMAGE, copy=True)
    with ps.MemoryScope() as scope:
        part.N(x)
    assert scope.peak_bytes == planned.peak_bytes, (scope.peak_bytes, planned.peak_bytes)
    assert (ps.traffic_of(planned).bytes > 0) == (TEAM.size > 1)


def own_range(extent):
    own = ps.part_range(extent, TEAM.rank, TEAM.size)
    return own.start, own.stop


def arrays():
    rows = ps.Placement({"Nx": "rank"})
    given = IMAGE if TEAM.rank == 0 else None
    d = ps.DTensor.scatter(given, "Nx Ny", TEAM, rows, type=(IMAGE.dtype, IMAGE.shape))
    start, stop = own_range(EXTENT)
    same(d.local, IMAGE[start:stop])
    columns = d.redistribute({"Ny": "rank"})
    same(columns.local, IMAGE[:, start:stop])
    whole = columns.gather()
    assert (whole is None) == (TEAM.rank != 0)
    if whole is not None:
        same(whole, IMAGE)
    same(columns.gather_to_all(), IMAGE)
    # Arrays of NumPy, a view with negative strides among them, and parts that may be empty.
    narrow = IMAGE[:1, ::-1]
    part = ps.DTensor.part_of(narrow, "Nx Ny", TEAM, rows)
    assert part.local.shape == ((1 if TEAM.rank == 0 else 0), EXTENT)
    same(part.gather_to_all(), narrow)
    again = ps.DTensor.from_local(np.array(part.local), "Nx Ny", narrow.shape, TEAM, rows)
    same(again.gather_to_all(), narrow)


def axes():
    # A transform along a cut dimension exchanges parts.
    F = ps.Fft(2, batch=()).with_sizes({"Nx": EXTENT, "Ny": EXTENT})
    part = ps.distribute(F, TEAM, {"Nx": "rank"})
    start, stop = own_range(EXTENT)
    same(part(IMAGE[start:stop]), F(IMAGE)[start:stop])
    assert ps.dot_test(ps.Halo("N", "N", EXTENT, TEAM, "rank"), extents=stop - start)


def user_code():
    """Operators written in Python; an exception on one rank ends the call of all."""

    class Doubled(ps.Op):
        def make_node(self, x):
            return ps.Apply(self, [x], [x.type()])

        def infer_shapes(self, node, shapes):
            return [shapes[0]]

        def perform(self, node, inputs, outputs):
            if broken and TEAM.rank == TEAM.size - 1:
                raise KeyError("the scanner is switched off")
            outputs[0][...] = 2 * inputs[0]

        linear_in = {0: "complex"}

        def pullback(self, node, cotangents):
            return [Doubled()(cotangents[0])]

    doubled = ps.SimpleLinop(lambda x: Doubled()(x), ishape="C Kx Ky", oshape="C Kx Ky")
    sampled = A | doubled
    own = slice(*own_range(N_COILS))
    part = ps.join_parts(ps.Dense(MAPS[own], "C Nx Ny, Nx Ny -> C Nx Ny") | ps.Fft(2, batch="C") | doubled,
                         TEAM, {"C": "rank"})
    broken = False
    same(part.N(IMAGE), sampled.N(IMAGE))
    broken = True
    try:
        part.N(IMAGE)
    except KeyError as error:
        assert TEAM.rank == TEAM.size - 1 and "switched off" in str(error)
    except ps.CommunicationError as error:
        assert TEAM.rank != TEAM.size - 1
        assert f"rank {TEAM.size - 1}" in str(error) and "switched off" in str(error), error
        assert isinstance(error, OSError)
    else:
        raise AssertionError("no error")
    broken = False
    same(part.N(IMAGE), sampled.N(IMAGE))


def mismatch():
    if TEAM.size == 1:
        return
    mine = ps.Diagonal(np.full(EXTENT, 1.0 + TEAM.rank), "N")
    other = mine if TEAM.rank else ps.Scalar(2.0, "N")
    try:
        ps.distribute(other, TEAM, {"N": "rank"})
    except ps.ShapeError as error:
        assert "rank" in str(error)
    else:
        raise AssertionError("no error")


def communicator():
    try:
        from mpi4py import MPI
    except ImportError:
        return
    team = ps.Team.of(MPI.COMM_WORLD, {"coils": TEAM.size})
    assert (team.rank, team.size, team.axes) == (MPI.COMM_WORLD.rank, TEAM.size, {"coils": TEAM.size})
    same(ps.distribute(A, team, {"C": "coils"}).N(IMAGE), A.N(IMAGE))


if __name__ == "__main__":
    for part in (coils, arrays, axes, user_code, mismatch, communicator):
        part()
        sys.stdout.write(f"ok {part.__name__} {TEAM.rank}\n")
        sys.stdout.flush()
