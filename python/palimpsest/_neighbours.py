# SPDX-License-Identifier: Apache-2.0
"""The other distribution whose files have the same folder."""

import os
import warnings

from palimpsest.errors import PalimpsestWarning


def warn_of_other_distribution(module: str) -> None:
    """Warns if the distribution `palimpsest`, another project, is installed in the folder of this one.

    module: the path of a module of this package. Each of the two overwrites files of the other: the one that came last works, and
    uninstalling one of them breaks both.
    """
    site = os.path.dirname(os.path.dirname(module))
    others = [name for name in os.listdir(site) if name.startswith("palimpsest-") and name.endswith(("-info", ".egg"))]
    if others:
        warnings.warn(
            f"{os.path.join(site, others[0])}: the distribution 'palimpsest' is another project, and its files are in the folder of "
            "this one, 'palimpsest-linops'. Try: pip uninstall palimpsest palimpsest-linops; pip install "
            "palimpsest-linops", PalimpsestWarning, stacklevel=3)
