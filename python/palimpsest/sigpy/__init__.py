# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of SigPy 0.1.27, for programs that were written for it.

`import palimpsest.sigpy as sp` in place of `import sigpy as sp`. Operators and functions are those of this package,
with its plans, threads and rounding errors. Names that are not mapped raise NotSupported, and say what is nearest.
"""

from types import SimpleNamespace as _SimpleNamespace

from palimpsest.sigpy import _functions, alg as alg, app as app, linop as linop, prox as prox
from palimpsest.sigpy._functions import *  # noqa: F403

backend = block = conv = fourier = interp = sim = thresh = util = wavelet = pytorch = _functions
config = _SimpleNamespace(cupy_enabled=False, cudnn_enabled=False, nccl_enabled=False, mpi4py_enabled=False,
                          pytorch_enabled=False, numba_enabled=False)
version = _SimpleNamespace(__version__="0.1.27")  # whose names these are

from palimpsest.sigpy import mri as mri  # noqa: E402
