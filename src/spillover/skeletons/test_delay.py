"""ExampleDelay keeps the contract of a delay, and is as late as it says."""

import numpy as np
import pytest

import spillover as sp
from spillover.skeletons.delay import ExampleDelay
from spillover.testing import check_delay


def test_it_keeps_the_contract() -> None:
    check_delay(ExampleDelay())


def test_the_missed_reports_are_as_many_as_it_says() -> None:
    drawn = ExampleDelay(period=7, missed=0.25).draw(7, sp.Rng(0, np.arange(10_000)), (10_000,))
    assert set(drawn.tolist()) == {0, 7}
    assert abs(np.mean(drawn == 7) - 0.25) < 0.02  # more than four standard errors


def test_an_impossible_period_is_refused() -> None:
    with pytest.raises(ValueError, match="period = 0"):
        ExampleDelay(period=0)
