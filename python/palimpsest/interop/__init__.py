# SPDX-License-Identifier: Apache-2.0
"""Other packages: a module each, imported when it is asked for."""
