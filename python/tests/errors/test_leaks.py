# SPDX-License-Identifier: Apache-2.0
"""Memory returns to its level after many rounds of each entry, also of those that fail."""

import gc
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import palimpsest as ps
import palimpsest.ops as po

X = np.ones(6)
A = ps.Dense(np.eye(6), "MN,N->M")
v = ps.dvector("v")
f = ps.function([v], po.exp(v))
s = ps.shared(X, "s")
update = ps.function([v], s, updates={s: v})
T = ps.asarray(X, copy=True)
OUT = np.zeros(6)


def failing(call):
    def fails():
        with pytest.raises(Exception):  # noqa: B017
            call()

    return fails


def write(t):
    t.fill_(1)


ROUNDS = {
    "import": lambda: ps.asarray(X),
    "import of a list": lambda: ps.asarray([1.0, 2.0]),
    "import with a copy": lambda: ps.asarray(np.ones(3, ">f8")),
    "export": lambda: T.numpy(),
    "round trip": lambda: ps.asarray(T.numpy()),
    "dlpack": lambda: np.from_dlpack(T),
    "lazy clone": lambda: T.lazy_clone()[1:].fill_(2),
    "operator": lambda: A(X),
    "operator on a tensor": lambda: A.H(T),
    "new operator": lambda: (ps.Diagonal(X, "N") | ps.Identity("N")).H,
    "parameter": lambda: A.weight.value,
    "function": lambda: f(X),
    "keywords": lambda: f(v=X),
    "call_into": lambda: f.call_into(OUT, X),
    "update": lambda: update(X),
    "shared": lambda: s.set_value(s.get_value()),
    "modify": lambda: s.modify(write),
    "variable": lambda: po.exp(v + 1)[2:].sum(),
    "gradient": lambda: ps.grad(po.sum(v**2), v),
    "plan": lambda: f.plan(X).to_json(),
    "wrong shape": failing(lambda: f(np.ones((2, 2)))),
    "wrong dtype": failing(lambda: f(X + 1j)),
    "wrong keyword": failing(lambda: f(w=X)),
    "wrong operand": failing(lambda: A(np.ones(7))),
    "wrong array": failing(lambda: ps.asarray("text")),
}


def settle():
    """Frees garbage, and the names of attributes that Python's cache of look-ups keeps.

    A name that stands at another address than before, as under a sanitizer, takes another one of its 4,096 places.
    """
    gc.collect()
    (sys._clear_internal_caches if sys.version_info >= (3, 13) else sys._clear_type_cache)()


@pytest.mark.parametrize("name", ROUNDS)
def test_memory_returns_to_its_level(name):
    run, n = ROUNDS[name], 10_000 if "wrong" not in name else 2_000
    references = sys.getrefcount(X)
    for _ in range(100):
        run()
    gc.collect()
    live = ps.live_bytes()
    tracemalloc.start()
    try:
        levels = []
        for _ in range(3):
            for _ in range(n // 2):
                run()
            settle()
            levels.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Less than a byte per round. Python sets up 5 kB once (version 3.10), which only one span contains.
    assert min(levels[1] - levels[0], levels[2] - levels[1]) < n // 2
    assert ps.live_bytes() == live
    assert sys.getrefcount(X) == references


def test_solves_and_compilations_are_let_go():
    P = A.N

    def round():
        ps.conjugate_gradients(P, X, callback=lambda info: info.iteration < 3)
        ps.function([v], po.exp(v))(X)
        ps.SimpleLinop(lambda x: 2 * x, ishape="N")(X)

    for _ in range(5):
        round()
    gc.collect()
    live, references = ps.live_bytes(), sys.getrefcount(X)
    for _ in range(100):
        round()
    gc.collect()
    assert ps.live_bytes() == live and sys.getrefcount(X) == references


# Objects that reach `op`, an op of Python or a function, which reaches them again.
CYCLES = """
import sys
import numpy as np, palimpsest as ps, palimpsest.ops as po
class Twice(ps.Op):
    def make_node(self, x): return ps.Apply(self, [x], [x.type])
    def infer_shapes(self, node, shapes): return shapes
    def perform(self, node, inputs, outputs): outputs[0][...] = 2 * inputs[0]
def result_of(op):
    seen = []
    def keep(info): seen.append(info)
    keep.op = op
    r = ps.conjugate_gradients(ps.Diagonal(np.ones(3), "N"), np.ones(3), callback=keep)
    r.keep = keep
    return seen[0], r
def default_update(op):
    s = ps.shared(np.ones(3))
    s.default_update = op(s)
    return s
def noted(v, op):
    v.tag.op = op
    return v
x = ps.dvector("x")
linop = lambda op: ps.SimpleLinop(lambda v: op(v), lambda v: op(v), lambda v: op(v), "N")
prox = lambda op: ps.CustomProx(lambda v, t: op(v))
function = lambda op: ps.function([x], op(x), profile=True)
MAKERS = dict(
    Variable=lambda op: op(op(x)), _Apply=lambda op: op(x).owner, _Tag=lambda op: op(x).tag, In=lambda op: ps.In(op(x)),
    Out=lambda op: ps.Out(op(x)), Function=function, _FunctionGraph=lambda op: function(op).graph,
    _Profile=lambda op: function(op).profile, Plan=lambda op: function(op).plan(np.ones(3)),
    SharedVariable=default_update, Parameter=lambda op: noted(ps.Parameter(np.ones(3)), op),
    LoopResult=lambda op: po.loop(lambda s: [op(s)], states=[x], n_steps=3), NamedLinop=lambda op: linop(op).N,
    BudgetSplit=lambda op: ps.split_to_budget(linop(op), np.ones(3), "1M"), Prox=prox,
    Term=lambda op: ps.Term(prox(op), linop(op)), Quadratic=lambda op: ps.Quadratic(1.0, linop(op)),
    Objective=lambda op: ps.Objective(linop(op), h=prox(op)), Mode=lambda op: ps.MonitorMode(pre=op),
    _Using=lambda op: ps.config.using(progress=op), SolveInfo=lambda op: result_of(op)[0],
    SolveResult=lambda op: result_of(op)[1])
"""
# Python finds these cycles by itself.
COLLECTED = {"Function", "Mode", "_Using", "SolveResult"}
# Values, arrays and reports, which reach no code of users.
PLAIN = set("""
    BatchSpec Brightness CalibrationArea CompressedKspace ContractReport CopyStats DTensor DType Dims DotTest Ellipse
    EspiritPlan FailingAllocator GFactor GradientTest History InplaceTest IsmrmrdContents IsmrmrdImageHead IsmrmrdImages MapsResult MemoryLimit MemoryScope MrcImage
    NamedDimension NamedShape NiftiImage NormalTest PartialLines Placement Quality RandomState RankPlan Reconstruction Scan
    SmallestTeam SolvePlan SplitTest Storage Team TeamPlan Tensor TensorType Traffic _Config _Container _ExportedMemory
    """.split())


def makers():
    scope = {}
    exec(CYCLES, scope)
    return scope["MAKERS"], scope["Twice"]


def test_cycles_are_made_with_every_class_that_reaches_python():
    modules = [ps._core, ps._core.ops]
    classes = {value.__name__ for m in modules for value in vars(m).values() if isinstance(value, type)}
    assert classes == set(makers()[0]) | PLAIN


def test_cycles_are_given_up_at_the_end():
    program = CYCLES + """
for name, make in MAKERS.items():
    op = Twice()
    op.made = make(op)
    assert type(op.made).__name__ == name
entered = ps.config.using(progress=lambda info: entered)
entered.__enter__()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", sorted(COLLECTED))
def test_cycles_are_collected(name):
    all_makers, op_type = makers()
    op = op_type()
    op.made = all_makers[name](op)
    seen = weakref.ref(op)
    del op
    gc.collect()
    assert seen() is None


def test_operators_and_proximal_functions_are_used_in_cycles():
    program = """
import numpy as np, palimpsest as ps
s = ps.SimpleLinop(lambda x: 2 * x, None, lambda x: 4 * x, "N"); s.N(np.ones(3)); t = s @ s; s.H(np.ones(3))
g = ps.CustomProx(lambda v, t: v); g.prox(np.ones(3))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
