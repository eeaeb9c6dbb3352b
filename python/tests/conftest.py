# SPDX-License-Identifier: Apache-2.0
import gc
import signal

import hypothesis
import numpy as np
import pytest

# Shells start background jobs with SIGINT ignored, and Python keeps that: nothing could be interrupted there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same cases on every run; no time limit, since machines differ.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=200, database=None
)
hypothesis.settings.load_profile("fixed")


def pytest_sessionfinish(session):
    session.items.clear()


def pytest_unconfigure(config):
    """Lets the tests go, with their parameters, while all modules are whole.

    Some packages keep pytest alive to the end of the process, and objects of the library would be reported as leaks.
    The callback of hypothesis would fail in the last collection, when the names in its module are gone.
    """
    gc.callbacks.clear()
    config.pluginmanager.get_plugin("terminalreporter").stats.clear()


LAYOUTS = ("dense", "shifted", "strided", "transposed", "reversed")


class Windows:
    """Makes arrays inside larger ones, whose other bytes must not change."""

    layouts = LAYOUTS

    def __init__(self):
        self.made = []

    def __call__(self, shape, dtype=float, layout="dense"):
        shape, dtype = tuple(np.atleast_1d(shape)), np.dtype(dtype)
        strides = np.empty(shape, dtype, order="F" if layout == "transposed" else "C").strides
        strides = [s * {"strided": 2, "reversed": -1}.get(layout, 1) for s in strides]
        reaches = [(n - 1) * s for n, s in zip(shape, strides)] if 0 not in shape else []
        low, high = (sum(r for r in reaches if r * sign > 0) for sign in (-1, 1))
        margin = (max(4096, 2 * (high - low)) // 64 + 1) * 64
        start = margin - low + (0 if layout == "dense" else dtype.itemsize)
        memory = np.random.default_rng(len(self.made)).bytes(start + high + margin)
        memory = np.frombuffer(bytearray(memory), np.uint8)
        inside = np.zeros(memory.size, bool)
        np.ndarray((*shape, dtype.itemsize), bool, inside, start, (*strides, 1))[...] = True
        self.made.append((memory, memory.copy(), inside, layout))
        return np.ndarray(shape, dtype, memory, start, strides)

    def check(self):
        for memory, before, inside, layout in self.made:
            changed = np.flatnonzero((memory != before) & ~inside)
            assert changed.size == 0, f"{changed.size} bytes beside a {layout} window have changed"


@pytest.fixture
def window():
    """window(shape, dtype, layout): an array inside a larger one, which is checked at the end."""
    windows = Windows()
    yield windows
    windows.check()
