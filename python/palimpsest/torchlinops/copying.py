# SPDX-License-Identifier: Apache-2.0
"""palimpsest.copying, by the name that it has in torch-named-linops."""

from palimpsest.copying import memory_aware_deepcopy as memory_aware_deepcopy
from palimpsest.copying import memory_aware_to as memory_aware_to
from palimpsest.copying import memory_report as memory_report
