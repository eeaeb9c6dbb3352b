# SPDX-License-Identifier: Apache-2.0
"""Advice in messages is written as a user of Python would write it."""

import numpy as np
import pytest

import palimpsest as ps


def message_of(call):
    with pytest.raises(ps.Error) as caught:
        call()
    return str(caught.value)


def unused_input():
    x = ps.dvector("x")
    ps.function([x], ps.ones(2))


def other_shape():
    s = ps.shared(np.zeros(2), shape=(2,))
    s.set_value(np.zeros(3))


def in_place_without_leave():
    x = ps.dvector("x")
    ps.function([x], ps.ops.inplace.exp_inplace(x))


def unknown_size():
    ps.distribute(ps.Fft(1, batch=()), ps.Team.pretend({"rank": 2}), {"Nx": "rank"})


def no_team():
    ps.smallest_team(ps.Diagonal(np.ones(9), "N"), 1, np.ones(9))


def masked():
    ps.asarray(np.ma.ones(3))


@pytest.mark.parametrize("call, advice", [
    (unknown_size, 'Try with_sizes({"Nx": ..})'),
    (no_team, "Try most_ranks, or"),
    (masked, "Try .filled()"),
    (unused_input, "Try on_unused_input='ignore'"),
    (other_shape, "shape=None"),
    (in_place_without_leave, "accept_inplace=True"),
])
def test_advice_is_python(call, advice):
    text = message_of(call)
    assert advice in text
    assert "::" not in text and "{." not in text


X = ps.dvector("x")


@pytest.mark.parametrize("call, kind, text", [
    (lambda: ps.asarray(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.shared(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.ones(2).__setitem__(0, None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.ones(2).fill_(None), TypeError, "[array] got NoneType, expected an array"),
    (lambda: ps.read_npy(None), TypeError, "[read_npy] path: got None, expected str | PathLike[str]"),
    (lambda: ps.ops.exp(None), TypeError, "[exp] x: got None, expected VariableLike"),
    (lambda: ps.ones(2).flip(None), TypeError, "[Tensor.flip] axes: got None, expected int | Sequence[int]."),
    (lambda: ps.ones(2).flip(), TypeError, "[Tensor.flip] axes: got nothing, expected int | Sequence[int]."),
    (lambda: ps.ones(2).transpose("a"), TypeError, "[Tensor.transpose] a: got str, expected int."),
    (lambda: ps.ones(2).transpose(0, 2**80), TypeError, "[Tensor.transpose] b: got 12089258196146291"),
    (lambda: ps.ones(2).transpose(0, 1, 2), TypeError, "[Tensor.transpose] got 3 arguments, expected at most 2."),
    (lambda: ps.ones(2).numpy(write=True), TypeError, "got an unknown argument 'write', expected writable."),
    (lambda: ps.ones(2).is_alias_of(np.ones(2)), TypeError, "[Tensor.is_alias_of] other: got numpy.ndarray, expected"),
    (lambda: ps.ones(2).to(None), TypeError, "[Tensor.to] device_or_dtype: got None, expected a value."),
    (lambda: ps.Identity("N").compose(None), TypeError, "[NamedLinop.compose] inner: got None, expected NamedLinop."),
    (lambda: ps.L1().prox(np.ones(2), "a"), TypeError, "[Prox.prox] t: got str, expected float."),
    (lambda: ps.function([X], X).allow_gc(None), TypeError, "[Function.allow_gc] value: got None, expected bool."),
    (lambda: ps.Function.load(3), TypeError, "[Function.load] path: got int, expected str."),
    (lambda: ps.function([X], X).free(1), TypeError, "[Function.free] got 1 arguments, expected at most 0."),
    (lambda: ps.FAST_RUN.including(None), TypeError, "[Mode.including] got NoneType, expected a tag."),
    (lambda: ps.L1(1.0, 2.0), TypeError, "[L1] got 2 arguments, expected at most 1."),
    (lambda: ps.from_bytes("a"), TypeError, "[from_bytes] data: got str, expected bytes."),
    (lambda: ps.L1().scaled("a"), TypeError, "[Prox.scaled] a: got str, expected complex."),
    (lambda: ps.Identity("N").renamed(3), TypeError, "[NamedLinop.renamed] names: got int, expected dict."),
    (lambda: ps.L1Wavelet(1.0, "N", level_weights=[None]), TypeError, "[L1Wavelet] L1Wavelet(): incompatible"),
    (lambda: ps.Dense(None), TypeError, "[Dense] weight: got None, expected ArrayLike | Parameter."),
    (lambda: ps.Diagonal(X, "N"), TypeError, "[Diagonal] got a Variable, expected values."),
    (lambda: ps.Sampling.from_mask(None), TypeError, "[SamplingFromMask] mask: got None"),
    (lambda: X.sum(keepdims=None), TypeError, "[Variable.sum] keepdims: got None, expected bool."),
    (lambda: ps.Box("a", 1), TypeError, "[Box] lo: got str, expected float."),
    (lambda: ps.L1().on(3), TypeError, "[operator] got int, expected a NamedLinop."),
    (lambda: ps.L1().weighted(), TypeError, "[Prox.weighted] w: got nothing, expected float."),
    (lambda: ps.Term(None), TypeError, "[Term] g: got NoneType, expected a Prox."),
    (lambda: ps.ops.set_row(1, 1, 1.5), ValueError, "[set] number of axes: got int64 (), expected at least 1"),
    (lambda: ps.Objective(ps.Identity("N"), h=3), TypeError, "[Objective] h: got int, expected a Prox."),
    (lambda: ps.Objective(ps.Identity("N"), terms=3), TypeError, "[Objective] terms: got int, expected a list."),
    (lambda: ps.Objective(ps.Identity("N"), terms=[3]), TypeError, "[Objective] terms: got int, expected a Term."),
    (lambda: ps.function([X], X).copy(swap={X: X}), TypeError, "[Function.copy] swap: got palimpsest._core.Variable,"),
    (lambda: ps.function([X], X).copy(swap=3), TypeError, "[Function.copy] swap: got int, expected a dict."),
    (lambda: ps.zeros(np.array("x")), TypeError, "[zeros] got numpy.ndarray, expected an integer or a list"),
    (lambda: ps.Identity(object()), TypeError, "[Identity] got object, expected names of dimensions"),
    (lambda: setattr(ps.Identity("N"), "name", 3), TypeError, "[NamedLinop.name] value: got int, expected str."),
    (lambda: ps.Fft(1, norm=3), TypeError, "[Fft] norm: got int, expected one of 'backward', 'ortho', 'forward'."),
    (lambda: ps.ones(2).to("vulkan:0"), ps.DeviceError, "'vulkan:0', expected one that exists: cpu:0 .. cpu:63"),
    (lambda: ps.ones(2, device="rocm"), ps.DeviceError, "'rocm', expected one that exists: cpu:0 .. cpu:63"),
    (lambda: ps.MemoryScope("cuda:99"), ps.DeviceError, "; devices: cpu:0"),
    (lambda: ps.MemoryLimit(100, "cpu:77"), ps.DeviceError, "got cpu:77, expected cpu:0 .. cpu:63"),
    (lambda: ps.asarray([1, [2]]), ValueError, "got a list of 1, expected a number."),
    (lambda: ps.asarray([[1], 2]), ValueError, "got a number, expected a list of 1."),
    (lambda: ps.random_normal(3, key=-1), OverflowError, "[key] got -1, expected 0 to 2**64 - 1."),
    (lambda: ps.random_normal(3, key=np.ones(3)), ValueError, "[key] expected a seed"),
    (lambda: ps.random_normal(3, key=1.5), TypeError, "[key] got float, expected a seed"),
    (lambda: ps.BatchSpec("N"), TypeError, "got str, expected a dict"),
    (lambda: ps.BatchSpec(3), TypeError, "got int, expected a dict"),
    (lambda: ps.split_linop(ps.Identity("N"), "N"), TypeError, "got str, expected a dict"),
    (lambda: ps.Restrict("N", "N"), TypeError, "got str, expected a dict"),
    (lambda: ps.Embed("N", ["ab"]), TypeError, "got str, expected a dict"),
    (lambda: ps.ops.tensordot(X, X, "a"), TypeError, "[tensordot] axes: got str, expected a number"),
    (lambda: ps.function([X], X, updates=3), TypeError, "[function] updates: got int, expected a dict"),
    (lambda: ps.function([X], X, givens=[3]), TypeError, "[function] givens: got int, expected a dict"),
    (lambda: ps.zeros(2, "complex256"), TypeError, "Try 'complex128'"),
    (lambda: ps.zeros(2, "bfloat16"), TypeError, "Try 'float32'"),
    (lambda: ps.asarray(np.ones(2, "G")), TypeError, "Try .astype('complex128')"),
    (lambda: ps.ops.irfft(X, 2**61), OverflowError, "expected"),
    (lambda: ps.ops.nufft_adjoint(np.ones(3), X, 2**34), OverflowError, "grid_size: got (17179869184,), expected"),
])
def test_texts_name_what_was_given(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert ps.random_normal(3, key=2**64 - 1).shape == (3,)
