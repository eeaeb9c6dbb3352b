# SPDX-License-Identifier: Apache-2.0
"""Calls of many threads, forks beside them, their end, and Ctrl-C at a terminal."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as po

RNG = np.random.default_rng(4)
W = RNG.normal(size=(40, 40))
A = ps.Dense(W, "MN,N->M")
F = ps.Fft(2, batch=())
X = RNG.normal(size=40)
IMAGE = RNG.normal(size=(32, 32)) + 0j


def in_threads(run, n=4):
    """Runs a function in n threads at once. Returns the results or raises the first exception."""
    start, results = threading.Barrier(n), [None] * n

    def body(k):
        start.wait()
        try:
            results[k] = run(k)
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=body, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def solve(_):
    return ps.cg_normal(A, X, max_iterations=30).x


def compile_and_call(k):
    v = ps.dvector("v")
    return ps.function([v], po.exp(v) * 2 + po.sum(v))(X)


def new_operators(k):
    return (ps.Diagonal(X, "N") | ps.Dense(W, "MN,N->M") | ps.Identity("M")).N(X)


v = ps.dvector("v")
f = ps.function([v], po.exp(v) + po.sum(v))


@pytest.mark.parametrize("run", [
    lambda k: A(X), lambda k: F(IMAGE), lambda k: A.N(X), lambda k: f(X), solve, compile_and_call,
    new_operators, lambda k: ps.from_bytes(ps.to_bytes(A))(X), lambda k: A.H.H.H(X),
    lambda k: A.weight.value.copy(), lambda k: ps.asarray(X).clone().numpy(),
])
def test_four_threads_get_the_bits_of_one(run):
    expected = run(0)
    for results in (in_threads(lambda k: [run(k) for _ in range(10)]) for _ in range(3)):
        assert all(np.array_equal(r, expected) for list_ in results for r in list_)


def test_updates_come_one_after_the_other():
    s = ps.shared(np.zeros(3))
    step = ps.function([v], s, updates={s: s + v})
    in_threads(lambda k: [step(np.ones(3)) for _ in range(200)])
    assert s.get_value().tolist() == [800, 800, 800]


def test_clones_exports_and_writes_beside_each_other():
    t = ps.asarray(np.arange(100.0), copy=True)

    def work(k):
        for _ in range(200):
            mine = t.lazy_clone()
            array = np.asarray(mine)
            array[0] = k
            assert mine.tolist()[:2] == [k, 1]
            assert ps.asarray(array).storage_id == mine.storage_id

    in_threads(work)
    assert t.tolist() == list(range(100))


def test_weights_are_written_while_operators_are_made():
    B = ps.Diagonal(np.ones(5), "N")

    def work(k):
        for i in range(100):
            if k == 0:
                B.weight.set_value(np.full(5, float(i)))
            else:
                y = B(np.ones(5))
                assert (y == y[0]).all()

    in_threads(work)


def program(text, timeout=120, **options):
    return subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", text],
                          capture_output=True, text=True, timeout=timeout, **options)


def test_forks_while_three_threads_call():
    result = program("""
import os, threading, time, numpy as np, palimpsest as ps, warnings
warnings.simplefilter("ignore")
A = ps.Dense(np.random.default_rng(1).normal(size=(200, 200)), "MN,N->M")
F = ps.Fft(2, batch=())
x, image = np.ones(200), np.ones((64, 64), complex)
expected = A(x), F(image)
go = True
def work():
    while go:
        A.N(x); F(image)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for n in range(100):
    pid = os.fork()
    if pid == 0:
        ok = np.array_equal(A(x), expected[0]) and np.array_equal(F(image), expected[1])
        os._exit(0 if ok else 3)
    deadline = time.monotonic() + 20
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done: break
        if time.monotonic() > deadline:
            os.kill(pid, 9); os.waitpid(pid, 0); raise SystemExit(f"child {n} hangs")
        time.sleep(0.001)
    assert status == 0, (n, status)
go = False
for t in threads: t.join()
print("done")
""")
    assert result.stdout == "done\n" and result.returncode == 0, result.stderr[-2000:]


def said_at_the_end(result):
    """The lines of stderr other than the expected ones about objects that threads keep."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith((" - ", "See "))]
    return [line for line in lines if not line.startswith("nanobind: ")]


@pytest.mark.parametrize("end", ["", "raise SystemExit(5)", "atexit"])
def test_the_end_with_calls_in_flight(end):
    result = program(f"""
import threading, time, numpy as np, palimpsest as ps, os
A = ps.Dense(np.ones((300, 300)), "MN,N->M")
x = np.ones(300)
def work():
    while True: A.N(x)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
{end if end != "atexit" else "import atexit; atexit.register(lambda: A(x))"}
""")
    assert result.returncode == (5 if "5" in end else 0), result.stderr[-2000:]
    assert not said_at_the_end(result)


# The interpreter ends threads in code of Python that C++ called, and runs exit handlers meanwhile.
@pytest.mark.parametrize("body", [
    "A.N",
    "ps.cg_normal(A, x, max_iterations=3, callback=lambda info: sum(range(99)) > 0)",
    "v = ps.dvector(); ps.function([v], v * 2 + 1)(x)",
    "ps.Diagonal(x, 'N').H",
    "twice(x)",
    "A(Arrayish())",
])
def test_the_end_within_code_of_python_that_was_called_back(body):
    text = f"""
import threading, time, numpy as np, palimpsest as ps
A = ps.Dense(np.ones((30, 30)), "MN,N->M")
x = np.ones(30)
class Twice(ps.Op):
    __props__ = ()
    def make_node(self, x): return ps.Apply(self, [x], [x.type()])
    def infer_shapes(self, node, shapes): return [shapes[0]]
    def perform(self, node, inputs, outputs):
        for i in range(30): outputs[0][i] = 2 * inputs[0][i]
v = ps.dvector()
twice = ps.function([v], Twice()(v))
class Arrayish:
    def __array__(self, dtype=None, copy=None): return sum(range(99)) * x
def work():
    while True: {body}
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.03)
"""
    for _ in range(3):
        result = program(text)
        assert result.returncode == 0, result.stderr[-2000:]
        assert not said_at_the_end(result)


def test_exit_handlers_and_ends_of_objects_may_call():
    result = program("""
import atexit, sys
@atexit.register  # runs after those that the import registers
def handler():
    v = ps.dvector()
    print(ps.function([v], v * 2)(np.ones(2)), A.H.H is A, A.N(np.ones(3)))
import numpy as np, palimpsest as ps
A = ps.Dense(np.ones((2, 3)), "MN,N->M")
class Late:
    A, function, x, print, out = A, ps.function, np.ones(3), print, sys.stderr
    def __del__(self):
        for last in (lambda: self.A(self.x), lambda: self.A.N, lambda: self.function([], [])):
            try: last()
            except Exception: pass
sys.late = Late()
""")
    assert result.stdout == "[2. 2.] True [6. 6. 6.]\n" and result.returncode == 0, result.stderr


def test_ctrl_c_at_a_terminal_ends_a_solve():
    text = """
import numpy as np, palimpsest as ps
A = ps.Dense(np.random.default_rng(1).normal(size=(400, 400)), "MN,N->M")
x = np.ones(400)
print("begin", flush=True)
try:
    while True:  # one solve ends when its residual is down to rounding
        ps.cg_normal(A, x, max_iterations=10**9, tolerance=0.0, history=False)
except KeyboardInterrupt:
    print("interrupted", A(x).shape, flush=True)
"""
    controller, terminal = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", text], stdin=terminal, stdout=terminal,
                             stderr=terminal, start_new_session=True,
                             preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
    os.close(terminal)
    seen = b""
    while b"begin" not in seen:
        seen += os.read(controller, 1000)
    time.sleep(0.5)
    pressed = time.monotonic()
    os.write(controller, b"\x03")  # the terminal turns it into a signal
    while b"(400,)" not in seen:
        try:
            more = os.read(controller, 1000)
        except OSError:  # the other end is closed
            more = b""
        if not more:
            break
        seen += more
    took = time.monotonic() - pressed
    assert child.wait(timeout=30) == 0
    os.close(controller)
    assert b"interrupted (400,)" in seen, seen
    assert took < 20  # 0.2 s and the step that runs, where nobody else uses the machine


def test_signals_of_the_program_are_handled_during_a_call():
    caught = []
    before = signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        deadline = time.monotonic() + 20
        while not caught and time.monotonic() < deadline:
            ps.cg_normal(A, X, max_iterations=2000, tolerance=0.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught


@pytest.mark.parametrize("before", ["", "import palimpsest"])
def test_subinterpreters_refuse_the_module(before):
    text = f"""
{before}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, '''
try:
    import palimpsest
except ImportError as error:
    print(error, flush=True)
''')
"""
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "subinterpreters" in result.stdout  # from Python 3.12 on the message is that of Python
