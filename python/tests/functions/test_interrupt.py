# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a call of the main thread and leaves everything as it was."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as pt


def test_ctrl_c_in_a_long_call():
    s = ps.shared(np.zeros((200, 200)))
    loop = pt.loop(lambda x: pt.exp(-(x @ x)), states=[s], n_steps=10**7)
    f = ps.function([], None, updates={s: loop.last(0) @ s})
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        f()
    assert time.monotonic() - start < 60
    assert not s.get_value().any() and s.version == 0


def test_ctrl_c_in_a_loop_whose_steps_work_in_place():
    x = ps.dscalar("x")
    f = ps.function([x], pt.loop(lambda q: [q * 1.0000001], states=[x], n_steps=10**8).last(0))
    times = []

    def send():
        times.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, send).start()
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    assert time.monotonic() - times[0] < 5  # at once, on an idle machine


def test_messages_of_the_library_go_to_logging(caplog):
    with caplog.at_level(logging.WARNING, "palimpsest"):
        A = ps.ToDevice("cpu:0", "cpu:1", "N")
        with ps.config.using(log_device_transfers=True):
            A(np.ones(3))
        for _ in range(1000):
            if caplog.records:
                break
            time.sleep(0.001)
    assert [r.name for r in caplog.records] == ["palimpsest"] and "[ToDevice]" in caplog.text


def run(program, environment=None):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True,
                          text=True, timeout=120, env=environment)


def test_import_is_light_and_silent():
    done = run("""
        import sys, threading
        import palimpsest
        assert "numpy" not in sys.modules, "numpy"
        assert threading.active_count() == 1
    """)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_nothing_is_printed_unless_it_is_asked_for():
    program = """
        import logging, sys, time
        import numpy as np
        import palimpsest as ps
        assert [type(h) for h in logging.getLogger("palimpsest").handlers] == [logging.NullHandler]
        with ps.config.using(log_device_transfers=True):
            ps.ToDevice("cpu:0", "cpu:1", "N")(np.ones(3))
        time.sleep(0.01)
    """
    for level, printed in (("", ""), ("warn", "palimpsest warning: [ToDevice]"), ("error", "")):
        done = run(program, {**os.environ, "PALIMPSEST_LOG": level} if level else None)
        assert done.returncode == 0 and done.stderr.startswith(printed) and bool(done.stderr) == bool(printed)


def test_exit_with_arrays_alive_and_a_call_in_flight():
    done = run("""
        import threading
        import numpy as np, palimpsest as ps
        x = ps.dmatrix("x")
        f = ps.function([x], x @ x)
        kept = [f(np.ones((300, 300))), ps.zeros(3).numpy(), ps.shared(np.ones(2))]
        def work():
            while True:
                f(np.ones((300, 300)))
        threading.Thread(target=work, daemon=True).start()
    """)
    assert done.returncode == 0, done.stderr


def test_fork_while_threads_call():
    done = run("""
        import os, threading
        import numpy as np, palimpsest as ps
        x = ps.dmatrix("x")
        f = ps.function([x], x @ x)
        a = np.ones((50, 50))
        expected = f(a)
        def work():
            while True:
                f(a)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(f(a), expected) else 1)
            assert os.waitpid(child, 0)[1] == 0
        os._exit(0)
    """)
    assert done.returncode == 0, done.stderr
