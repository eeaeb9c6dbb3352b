# SPDX-License-Identifier: Apache-2.0
"""The package is imported or reloaded when it was imported before in the same process."""

import os
import pathlib
import subprocess
import sys

import pytest

import palimpsest as ps

BEGIN = """
import importlib, pickle, sys
import numpy as np, palimpsest as ps

def drop():
    for name in [name for name in sys.modules if name.startswith("palimpsest")]:
        del sys.modules[name]

def work(ps):
    A = ps.Dense(np.eye(3)) | ps.Diagonal(np.arange(3.0), "M")
    x = ps.dvector("x")
    f = ps.function([x], ps.ops.exp(x))
    @ps.linop
    def twice(A, x):
        return 2 * x
    class Halved(ps.Op):
        def make_node(self, x): return ps.Apply(self, [x], [x.type])
        def infer_shapes(self, node, shapes): return shapes
        def perform(self, node, inputs, outputs): outputs[0][...] = inputs[0] / 2
    halved = ps.function([x], Halved()(x))
    try:
        A(np.ones(4))
    except ps.ShapeError as error:
        assert "[Chain]" in str(error)
    assert A(np.ones(3)).tolist() == [0, 1, 2] and f(np.zeros(1)).tolist() == [1]
    assert halved(np.ones(1)).tolist() == [0.5] and twice("N")(np.ones(2)).tolist() == [2, 2]
    assert pickle.loads(pickle.dumps(A))(np.ones(3)).tolist() == [0, 1, 2]
    assert ps.Dense.__doc__ and ps.Tensor.__doc__ and "Examples" in ps.conjugate_gradients.__doc__
    return A

first = ps
A = work(ps)
"""

END = """
assert A(np.ones(3)).tolist() == [0, 1, 2] and isinstance(A, ps.NamedLinop)
work(first), work(ps)
assert ps.Tensor.__doc__ == document
print("done", flush=True)
"""

WAYS = {
    "import": "drop(); import palimpsest as ps",
    "import_without_references": "del ps, first; drop(); import gc; gc.collect(); import palimpsest as ps; first = ps",
    "import_ten_times": "for _ in range(10):\n    drop(); import palimpsest as ps; work(ps)",
    "import_of_other_modules": "drop(); import palimpsest.torchlinops, palimpsest.ops.inplace; import palimpsest as ps",
    "reload": "assert importlib.reload(ps) is ps",
    "reload_ten_times": "for _ in range(10):\n    importlib.reload(ps); work(ps)",
    "reload_of_the_bindings": "importlib.reload(ps._core); importlib.reload(ps.ops); importlib.reload(ps)",
}


@pytest.mark.parametrize("way", WAYS)
def test_it_works_again(way):
    program = BEGIN + "document = ps.Tensor.__doc__\n" + WAYS[way] + END
    path = os.pathsep.join([str(pathlib.Path(ps.__file__).parents[1]), *filter(None, sys.path)])
    run = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", program], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": path})
    assert (run.returncode, run.stdout) == (0, "done\n") and not run.stderr, run.stderr


def test_another_distribution_in_the_same_folder_is_named(tmp_path):
    (tmp_path / "palimpsest").symlink_to(pathlib.Path(ps.__file__).parent)
    program = "import palimpsest as ps; assert ps.dvector('x') is not None"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "error", "-c", program]
    assert subprocess.run(command, env=env, check=False).returncode == 0
    (tmp_path / "palimpsest-1.2.dist-info").mkdir()
    run = subprocess.run(command, capture_output=True, text=True, env=env)
    assert run.returncode != 0 and "palimpsest-1.2.dist-info: the distribution 'palimpsest' is another" in run.stderr
