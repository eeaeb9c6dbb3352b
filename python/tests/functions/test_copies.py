# SPDX-License-Identifier: Apache-2.0
"""Copies and pickles of results, parameters and definitions."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import palimpsest as ps

x = ps.dvector("x")
A = ps.Diagonal(np.arange(1.0, 5.0), "N")
f = ps.function([x], 2 * x)


def _solve():
    return ps.conjugate_gradients(A, np.ones(4))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_results_of_solvers(protocol):
    r = _solve()
    r.note = [1]
    for again in (pickle.loads(pickle.dumps(r, protocol)), copy.deepcopy(r)):
        assert type(again.x) is np.ndarray and again.x.tolist() == r.x.tolist()
        for name in ("status", "converged", "iterations", "seconds", "peak_bytes", "applications", "batch_status",
                     "batch_iterations"):
            assert getattr(again, name) == getattr(r, name), name
        for name in ("iteration", "residual", "objective", "seconds", "numbers"):
            np.testing.assert_array_equal(getattr(again.history, name), getattr(r.history, name))
        assert repr(again) == repr(r) and again.note == [1] and again.note is not r.note
    assert copy.copy(r) is r


def test_results_of_batches_and_of_other_kinds():
    B = ps.Diagonal(np.arange(1.0, 9.0).reshape(2, 4), "KN")
    r = ps.conjugate_gradients(B, ps.ones((2, 4)), batch="K")
    again = pickle.loads(pickle.dumps(r))
    assert isinstance(again.x, ps.Tensor) and ps.equal(again.x, r.x)
    assert again.batch_status == r.batch_status != []
    assert again.batch_iterations == r.batch_iterations != []


@pytest.mark.xarray
def test_results_of_labelled_arrays_keep_their_labels():
    xarray = pytest.importorskip("xarray")
    b = xarray.DataArray(np.ones(4), dims="N", coords={"N": [3, 5, 7, 9]}, attrs={"unit": "T"})
    r = ps.conjugate_gradients(A, b)
    xarray.testing.assert_identical(pickle.loads(pickle.dumps(r)).x, r.x)


def test_results_come_back_from_other_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        r = pool.apply(ps.conjugate_gradients, (A, np.ones(4)))
    np.testing.assert_array_equal(r.x, _solve().x)


def test_parameters():
    p = ps.Parameter(np.ones(3), trainable=True)
    for again in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert again.trainable and again.value.tolist() == [1, 1, 1] and again is not p
        again.set_value(np.zeros(3))
        assert p.value.tolist() == [1, 1, 1]
    assert copy.copy(p) is p and not pickle.loads(pickle.dumps(A.weight)).trainable
    one, two = copy.deepcopy([p, p])
    assert one is two


def copies(objects):
    return [copy.deepcopy(objects), *(pickle.loads(pickle.dumps(objects, p)) for p in range(2, 6))]


def test_operators_share_parameters_as_their_originals_do():
    p = ps.Parameter(np.ones(4))
    B, C = ps.Diagonal(p, "N"), ps.Diagonal(p, "N")
    D = ps.Dense(np.eye(4), "MN,N->M")
    for E, H, weight, B2, C2, p2 in copies([D, D.H, D.weight, B, C, p]):
        assert E.weight is H.weight is weight and B2.weight is C2.weight is p2
        weight.set_value(2 * np.eye(4))
        p2.set_value(np.zeros(4))
        assert E(np.ones(4)).tolist() == [2] * 4 == H(np.ones(4)).tolist()
        assert E.N(np.ones(4)).tolist() == [4] * 4
        assert B2(np.ones(4)).tolist() == [0] * 4 == C2(np.ones(4)).tolist()
    assert D(np.ones(4)).tolist() == [1] * 4 == B(np.ones(4)).tolist()


def test_parts_of_one_parameter_stay_parts_of_one():
    tiles = [A.split({"N": slice(0, 2)}), A.split({"N": slice(2, 4)})]
    one, two, whole = copy.deepcopy([*tiles, A])
    whole.weight.set_value(np.zeros(4))
    assert one(np.ones(2)).tolist() == [0, 0] == two(np.ones(2)).tolist()
    part = A.weight.view(slice(1, 3))
    whole, part = pickle.loads(pickle.dumps([A.weight, part]))
    whole.set_value(np.arange(4.0))
    assert part.value.tolist() == [1, 2]
    assert len(pickle.dumps(ps.Diagonal(np.ones(10**5), "N").split({"N": slice(0, 2)}))) < 10**4


def test_operators_of_closures_have_deep_copies():
    S = ps.SimpleLinop(lambda v: 2 * v, ishape="N")
    assert copy.deepcopy([S])[0](np.ones(2)).tolist() == [2, 2]


def test_tensors_and_what_borrows_them():
    t = ps.zeros(3)
    for u, part, p in copies([t, t[1:], ps.borrow(t)]):
        u.fill_(1)
        assert part.tolist() == [1, 1] and p.value.tolist() == [1, 1, 1]
    assert t.tolist() == [0, 0, 0]
    assert copy.deepcopy([t[1:]])[0].storage.nbytes <= t.nbytes


def test_cuts():
    for given in (ps.BatchSpec({"N": 2}), ps.BatchSpec({"N": 2}, ["cpu:0", "cpu:0"], "cpu")):
        again = pickle.loads(pickle.dumps(given))
        assert isinstance(again, ps.BatchSpec) and copy.deepcopy(given) is given
        np.testing.assert_array_equal(ps.create_batched_linop(A, [again])(np.ones(4)), A(np.ones(4)))


CONSTANT = {
    "Variable": x,
    "In": ps.In(x),
    "Out": ps.Out(x),
    "Mode": ps.DebugMode(),
    "Plan": f.plan(np.ones(2)),
    "SolvePlan": ps.plan(ps.cg, A, np.ones(4)),
}


@pytest.mark.parametrize("name", list(CONSTANT))  # names only: the mark outlives the module
def test_what_no_pickle_can_hold(name):
    one = CONSTANT[name]
    with pytest.raises(TypeError, match=rf"\[pickle\] got a .*{name}, expected .*\. Try "):
        pickle.dumps(one)
    assert copy.copy(one) is one and copy.deepcopy([one])[0] is one


def test_scopes_are_not_pickled():
    with pytest.raises(TypeError, match="Try to keep its numbers"):
        pickle.dumps(ps.MemoryScope())
