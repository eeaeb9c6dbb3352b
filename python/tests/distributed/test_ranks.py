# SPDX-License-Identifier: Apache-2.0
"""Teams of ranks that mpirun starts, without a package of Python for MPI."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import palimpsest as ps

PROGRAM = pathlib.Path(__file__).with_name("program.py")
PARTS = ("coils", "arrays", "axes", "user_code", "mismatch", "communicator")


def has_mpi():
    """mpirun, and the module of MPI beside the library."""
    command = shutil.which("mpirun")
    return command and any(pathlib.Path(line.split()[-1]).with_name("libpalimpsest_mpi.so").exists()
                           for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
                           if "libpalimpsest.so" in line)


def started(ranks, *command):
    environment = {**os.environ, "PALIMPSEST_FLAGS": "threads=1",
                   "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # All ranks on one machine. Running as root is allowed: containers may have no other user.
    options = ["--oversubscribe", "--allow-run-as-root", "--mca", "btl", "self,vader", "--mca",
               "btl_vader_single_copy_mechanism", "none"]
    return subprocess.run(["mpirun", "-n", str(ranks), *options, sys.executable, *command],
                          capture_output=True, text=True, timeout=240, env=environment)


@pytest.mark.skipif(not has_mpi(), reason="no MPI")
@pytest.mark.parametrize("ranks", [2, 3])
def test_every_rank_computes_what_one_process_does(ranks):
    run = started(ranks, str(PROGRAM))
    assert run.returncode == 0, run.stdout + run.stderr
    assert sorted(run.stdout.split("\n")[:-1]) == sorted(
        f"ok {part} {rank}" for part in PARTS for rank in range(ranks))


@pytest.mark.skipif(not has_mpi(), reason="no MPI")
def test_a_rank_that_ends_is_missed():
    run = started(2, "-c", """
import os, palimpsest as ps, numpy as np
team = ps.Team.world(timeout_s=2)
part = ps.distribute(ps.Dense(np.ones((4, 3)), "CN,N->C"), team, {"C": "rank"})
if team.rank == 1:
    import time
    time.sleep(8)
    os._exit(0)
try:
    part.N(np.ones(3))
except ps.CommunicationError as error:
    print("missed:", error, flush=True)
os._exit(0)
""")
    assert "missed: " in run.stdout, run.stdout + run.stderr


def test_the_program_runs_without_mpirun():
    # Variables of a launcher that may have started this process are not passed on.
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("OMPI_", "PMI", "MPI"))}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    run = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=120,
                         env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split("\n")[:-1] == [f"ok {part} 0" for part in PARTS]


MISTAKES = [
    (lambda: ps.Team([2]), TypeError, "Try {'rank': 4}"),
    (lambda: ps.Team({"rank": 2}), ValueError, "product of 1"),
    (lambda: ps.Team({1: 1}), TypeError, "name of an axis"),
    (lambda: ps.Team({"rank": 1.0}), TypeError, "number of ranks"),
    (lambda: ps.Team({"rank": -1}), ValueError, "at least 1 rank"),
    (lambda: ps.Team({"rank": 2**80}), OverflowError, "64 bits"),
    (lambda: ps.Team({"rank": 1}, timeout_s=0.0), ValueError, "above 0"),
    (lambda: ps.Team.of(1), TypeError, "communicator of mpi4py"),
    (lambda: ps.Team.pretend({"rank": 2}, rank=2), ValueError, "expected 0 to 1"),
    (lambda: ps.Team().seen_from(0), RuntimeError, "real ranks"),
    (lambda: ps.Team.pretend({"rank": 2}).coordinate("z"), NameError, "rank 2"),
    (lambda: ps.Placement([("C", "rank")]), TypeError, "Try {'C': 'rank'}"),
    (lambda: ps.Placement({"C": 1}), TypeError, "name of an axis"),
    (lambda: ps.Placement({"C": "z"}).check(ps.Team.world()), NameError, "z"),
    (lambda: ps.part_range(4, 2, 2), ValueError, "part 2 of 2"),
    (lambda: ps.distribute(ps.Fft(1, batch=()), ps.Team.pretend({"rank": 2}), {"Nx": "rank"}), ps.ShapeError,
     'Try with_sizes({"Nx": ..})'),
    (lambda: ps.distribute(ps.Diagonal([1.0], "N"), ps.Team.world(), {"N": "coils"}), NameError, "coils"),
    (lambda: ps.distribute(ps.Diagonal([1.0], "N"), ps.Team.world(), {"N": "rank"}, sums="random"), ValueError,
     "'by_rank', 'canonical'"),
    (lambda: ps.distribute(ps.Diagonal([1.0], "N"), None, {"N": "rank"}), TypeError, "Team"),
    (lambda: ps.team_of(ps.Diagonal([1.0], "N")), ValueError, "distribute"),
    (lambda: ps.DTensor.part_of(np.ones(3), "N", ps.Team.world(), {}).gather(1), ValueError, "root: got 1"),
    (lambda: ps.DTensor.part_of(np.ones(3), "N", ps.Team.world(), {}).gather(-1), ValueError, "expected 0 to 0"),
    (lambda: ps.DTensor.part_of(np.ones(3), "N", ps.Team.world(), {}).ranges_of(1), ValueError, "rank: got 1"),
    (lambda: ps.DTensor.scatter(np.ones(3), "N", ps.Team.world(), {}, 2), ValueError, "root: got 2"),
    (lambda: ps.DTensor.scatter(None, "N", ps.Team.world(), {"N": "rank"}), TypeError, "type=(dtype, shape)"),
    (lambda: ps.DTensor.from_local([1.0], "N", 2, ps.Team.world(), {"N": "rank"}), ps.ShapeError, "2"),
    (lambda: ps.plan_on_team(ps.Diagonal([1.0], "N"), ps.Team.world(), {"N": "rank"}, [1.0], "back"), ValueError,
     "'forward', 'adjoint', 'normal'"),
    (lambda: ps.smallest_team(ps.Diagonal(np.ones(9), "N"), "much", [1.0] * 9), ValueError, "number of bytes"),
    (lambda: ps.smallest_team(ps.Diagonal(np.ones(9), "N"), 1, np.ones(9)), ps.BudgetError, "Try most_ranks,"),
]


@pytest.mark.parametrize("call, error, text", MISTAKES)
def test_mistakes(call, error, text):
    with pytest.raises(error, match="(?s).*") as raised:
        call()
    assert text in str(raised.value)


def test_an_operator_of_a_team_that_is_not_there_is_planned_not_run():
    A = ps.Dense(np.ones((8, 3)), "CN,N->C")
    part = ps.distribute(A, ps.Team.pretend({"rank": 4}), {"C": "rank"})
    assert part.N.plan(np.ones(3)).peak_bytes > 0
    with pytest.raises(ps.StateError, match="pretend"):
        part.N(np.ones(3))


def test_placements_are_values():
    placement = ps.Placement({"C": "coils", "Nx": "x"})
    assert pickle.loads(pickle.dumps(placement)) == placement == ps.Placement(placement)
    assert hash(ps.Placement({"C": "coils", "Nx": "x"})) == hash(placement)
    assert placement != ps.Placement({"C": "coils"}) and placement != 3
    assert placement.entries == {"C": "coils", "Nx": "x"}


def test_an_array_is_shown_where_it_lies():
    a = np.arange(6.0).reshape(3, 2)
    d = ps.DTensor.part_of(a, "Y X", ps.Team.world(), {"Y": "rank"})
    assert d.local.data_ptr() == a.ctypes.data
    a[0, 0] = 7
    assert d.local[0, 0].item() == 7
