# SPDX-License-Identifier: Apache-2.0
import hypothesis

# The same cases on every run; no time limit, since machines differ.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=200, database=None
)
hypothesis.settings.load_profile("fixed")
