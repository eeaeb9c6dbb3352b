# SPDX-License-Identifier: Apache-2.0
"""SigPy's mri: operators and apps of parallel imaging, simulation, sampling."""

from palimpsest.sigpy.mri import _steps, app as app, linop as linop
from palimpsest.sigpy.mri._steps import *  # noqa: F403

dcf = precond = samp = sim = util = _steps
