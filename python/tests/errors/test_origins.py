# SPDX-License-Identifier: Apache-2.0
"""Errors about a node name the line of Python that built it; tags hold what users write."""

import gc
import threading
import weakref

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as po


class Fails(ps.Op):
    def make_node(self, x):
        return ps.Apply(self, [x], [x.type])

    def infer_shapes(self, node, shapes):
        return [shapes[0]]

    def perform(self, node, inputs, outputs):
        raise LookupError("mine")


def product(x, y):
    return x * y  # the line that errors name


LINE = product.__code__.co_firstlineno + 1


def message_of(call):
    with pytest.raises(ps.Error) as caught:
        call()
    return str(caught.value)


def test_an_error_ends_with_the_line():
    x, y = ps.dvector("x"), ps.dvector("y")
    f = ps.function([x, y], product(x, y))
    text = message_of(lambda: f([1.0], [1.0, 2.0]))
    assert text.endswith(f"built at test_origins.py:{LINE} in product"), text


def test_more_frames_with_medium_verbosity():
    x, y = ps.dvector("x"), ps.dvector("y")
    with ps.config.using(exception_verbosity="medium", traceback_limit=2):
        f = ps.function([x, y], product(x, y))
        text = message_of(lambda: f([1.0], [1.0, 2.0]))
    lines = text.splitlines()
    at = lines.index("  built in:")
    assert lines[at + 1] == f"test_origins.py:{LINE} in product"
    assert lines[at + 2].endswith("in test_more_frames_with_medium_verbosity")


def test_frames_of_the_package_are_no_users_line():
    x = ps.dvector("x")
    with pytest.raises(LookupError) as caught:
        ps.function([x], Fails()(x))([1.0])  # Op.__call__ is a frame in between
    assert caught.value.__notes__[0].endswith("in test_frames_of_the_package_are_no_users_line")


def test_operators_name_the_line_of_their_function():
    @ps.linop
    def Broken(A, x):
        return Fails()(x)

    with pytest.raises(LookupError) as caught:
        Broken("N")([1.0])
    assert "in Broken" in caught.value.__notes__[0]


def test_other_threads_have_lines_too():
    found = []

    def work():
        x, y = ps.dvector("x"), ps.dvector("y")
        f = ps.function([x, y], product(x, y))
        found.append(message_of(lambda: f([1.0], [1.0, 2.0])))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].endswith(f"test_origins.py:{LINE} in product")


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file") as caught:
        ps.load(str(tmp_path / "missing.pal"))
    assert isinstance(caught.value, (ps.errors.NotFoundError, ps.errors.IoError))


# -- tags ---------------------------------------------------------------------------------------


def test_tags_hold_notes():
    x = ps.dvector("x")
    x.tag.note = "measured"
    y = x * 2
    y.tag.source = ("scan", 3)
    assert x.tag.note == "measured" and (y + 0).owner.inputs[0].tag.source == ("scan", 3)
    with pytest.raises(AttributeError, match="has no 'note'"):
        y.tag.note  # noqa: B018
    x.tag.note = "again"
    assert x.tag.note == "again"


def test_marks_of_tags_are_bools():
    x = ps.dvector("x")
    assert x.tag.indestructible is False and x.tag.nan_guard is True
    x.tag.indestructible = True
    assert x.tag.indestructible is True
    with pytest.raises(TypeError, match="expected a bool"):
        x.tag.nan_guard = 1


def test_notes_go_with_their_variable():
    class Value:
        pass

    value = Value()
    gone = weakref.ref(value)
    x = ps.dvector("x")
    x.tag.note = value
    del value, x
    gc.collect()
    ps.dvector("y").tag.note = 1  # tables are swept when they grow
    assert gone() is None


# -- keys of config that Python alone has ---------------------------------------------------------


def test_kind_of_results_by_config():
    x = ps.dvector("x")
    f, A = ps.function([x], x * 2), ps.Identity("N")
    with ps.config.using(returns="tensor"):
        assert isinstance(f(np.ones(2)), ps.Tensor) and isinstance(A(np.ones(2)), ps.Tensor)
        assert isinstance(ps.conjugate_gradients(A, np.ones(2)).x, ps.Tensor)
        D = ps.Diagonal(np.ones(2), "N")
        for made in (ps.to_dense(D), D.matrix(), ps.L1(1.0).prox(np.ones(2)), ps.svd(D, 1)[0],
                     ps.radial_trajectory(spokes=2, samples=4)):
            assert isinstance(made, ps.Tensor)
        with ps.config.using(returns="numpy"):
            assert isinstance(f(ps.ones(2)), np.ndarray)
        assert ps.config.returns == "tensor"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(type(f(np.ones(2)))))
        thread.start()
        thread.join()
        assert seen == [np.ndarray]
    assert isinstance(f(np.ones(2)), np.ndarray) and ps.config.returns is None
    fixed = ps.function([x], x * 2, returns="numpy")
    ps.config.returns = "tensor"
    try:
        assert isinstance(f([1.0]), ps.Tensor) and isinstance(fixed([1.0]), np.ndarray)
    finally:
        ps.config.returns = None
    assert "returns" in dir(ps.config) and isinstance(f([1.0]), np.ndarray)


def test_progress_by_config():
    A, seen = ps.Diagonal(np.arange(1.0, 5.0), "N"), []
    with ps.config.using(progress=lambda info: seen.append(info.iteration)):
        ps.conjugate_gradients(A, np.ones(4), max_iterations=3)
        n = len(seen)
        ps.conjugate_gradients(A, np.ones(4), max_iterations=3, progress=False)
    ps.conjugate_gradients(A, np.ones(4), max_iterations=3)
    assert n > 0 and len(seen) == n


@pytest.mark.parametrize(("key", "value", "error"), [
    ("returns", "lists", ValueError), ("returns", 3, TypeError), ("progress", "yes", TypeError),
    ("mode", "bla", ValueError), ("mode", 3, TypeError), ("threads", -1, ValueError),
    ("plan_effort_ms", -1, ValueError), ("traceback_limit", -1, ValueError), ("budget", -1, ValueError)])
def test_wrong_choices_are_refused(key, value, error):
    before = getattr(ps.config, key)
    with pytest.raises(error, match=key):
        setattr(ps.config, key, value)
    assert getattr(ps.config, key) == before
    with pytest.raises(error, match=key):
        ps.config.using(**{key: value})
