"""Shared settings of the tests."""

import os
import signal

from hypothesis import settings

from tests.properties import EXPLORED, FIXED, forget_constants_of_loaded_modules
from tests.quick_figures import quick_figures  # noqa: F401 (a fixture for tests of pages)

# Compiling a kernel for the first time takes seconds, so there is no deadline. `make test` draws the same examples each
# time, so that a failure is a change of the code; `make test-long` draws others each time, and more of them.
settings.register_profile("fixed", FIXED)
settings.register_profile("explore", EXPLORED)
settings.load_profile("fixed")  # unless --hypothesis-profile=explore is given, which is read later
forget_constants_of_loaded_modules()

# Shells let processes in the background ignore Ctrl-C, and whatever they start: then nothing could be interrupted here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables that the documents show are printed in full, however narrow the terminal is.
os.environ["COLUMNS"] = "120"
