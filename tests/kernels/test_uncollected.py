"""What makes compiling faster leaves the process as it was."""

import gc

import pytest

from spillover.kernels.compiling import uncollected


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_as_before_afterwards(collects):
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
