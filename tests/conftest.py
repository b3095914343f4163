"""Shared settings of the tests."""

import signal

from hypothesis import HealthCheck, settings

# Compiling a kernel for the first time takes seconds, so no deadline; the same examples each time, so that a failure
# is a change of the code.
settings.register_profile(
    "spillover", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spillover")

# Shells let processes in the background ignore Ctrl-C, and whatever they start: then nothing could be interrupted here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
