"""The 95% intervals of an evaluation contain the truth; `python -m tests.evaluation.coverage` prints the table."""

import pytest

from tests.evaluation.coverage import FAMILIES, HIDDEN, covered


def test_intervals_contain_the_truth_in_a_few_worlds():
    """A guard against intervals that are far too narrow: of 16, one or two may miss."""
    found = covered(FAMILIES[0], worlds=16, seed=7, draws=40, replays=10)
    assert (found[:, :5].mean(axis=0) >= 0.75).all()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES + HIDDEN, ids=lambda family: family.name)
def test_intervals_contain_the_truth_as_often_as_they_say(family):
    """With 100 worlds, 86% is two standard errors below 92%."""
    found = covered(family, worlds=100, seed=11)
    assert (found[:, :3].mean(axis=0) >= 0.86).all()
