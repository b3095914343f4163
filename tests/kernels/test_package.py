"""Every kernel is known by its file, and compiled again if anything that it is made of changes."""

from pathlib import Path

import pytest

from spillover import kernels
from spillover.kernels import cache, outcomes
from spillover.kernels.compiling import KERNELS

FOLDER = Path(kernels.__file__).parent


def test_a_kernel_that_does_not_exist():
    with pytest.raises(AttributeError, match=r"spillover\.kernels.*no_such_kernel"):
        _ = kernels.no_such_kernel


@pytest.mark.parametrize("changed", ["spread_rewards", "LARGEST_BITS", "bits_of"])
def test_kernels_are_kept_apart_by_all_that_they_are_made_of(changed, tmp_path, monkeypatch):
    """Functions and constants that are used, of their own file or of others, however indirectly."""
    functions = KERNELS["play"].function, KERNELS["feedback_fault"].function
    before = [cache.own_folder(tmp_path, function) for function in functions]
    assert before[0].parent == tmp_path
    monkeypatch.setattr(outcomes, changed, lambda *given: given)
    cache.mark_of.cache_clear()
    after = [cache.own_folder(tmp_path, function) for function in functions]
    assert [one != other for one, other in zip(before, after, strict=True)] == [
        changed == "spread_rewards",
        changed != "spread_rewards",
    ]
    monkeypatch.undo()
    cache.mark_of.cache_clear()
