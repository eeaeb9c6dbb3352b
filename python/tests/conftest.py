# SPDX-License-Identifier: Apache-2.0
import signal

import hypothesis

# Shells start background jobs with SIGINT ignored, and Python keeps that: nothing could be interrupted there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same cases on every run; no time limit, since machines differ.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=200, database=None
)
hypothesis.settings.load_profile("fixed")
