# SPDX-License-Identifier: Apache-2.0
"""`python -m palimpsest` is the command `palimpsest`."""

from _palimpsest_command import main

main()
