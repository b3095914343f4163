"""Estimates by propensities: those of obp, hand-computed cases, unbiasedness by enumeration, and refusals."""

from itertools import product

import numpy as np
import pytest

from spillover.evaluation.log import weighed
from tests.reference.off_policy_reference import OBP, estimates, obp_problem


def ours(action, reward, propensity, target, model):
    here = np.arange(len(action))
    found = weighed(
        reward,
        propensity,
        target[here, action],
        model=(target * model).sum(axis=1),
        predicted=model[here, action],
    )
    assert found.dr is not None
    return {"ips": found.ips.value, "snips": found.snips.value, "dr": found.dr.value}


def test_the_estimates_are_those_of_obp_and_of_the_definitions():
    problem = obp_problem()
    found, reference = ours(*problem), estimates(*problem)
    assert reference == pytest.approx(OBP, rel=1e-12)
    for name, value in found.items():
        assert value == pytest.approx(OBP[name], rel=1e-12)


def test_a_case_by_hand():
    found = weighed([3.0, 1.0, 2.0], [0.5, 0.25, 0.5], [1, 1, 0], model=[2.0, 2.0, 2.0], predicted=[2.0, 2.0, 1.0])
    assert found.dr is not None
    assert found.ips.value == pytest.approx((6 + 4 + 0) / 3)
    assert found.snips.value == pytest.approx(10 / 6)
    assert found.dr.value == pytest.approx((4 - 2 + 2) / 3)
    assert found.effective == pytest.approx(36 / 20)
    assert found.matching == 2
    assert not found.enough


def test_ips_and_dr_are_unbiased_over_all_logs_that_can_happen():
    """Two rounds, three sets: every log, weighted by its probability, gives the target's payoff, whatever the model."""
    logging, target = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.0, 0.9])
    payoff, model = np.array([1.0, 5.0, 2.0]), np.array([0.3, -2.0, 7.0])
    expected = np.zeros(2)
    for log in product(range(3), repeat=2):
        chosen = list(log)
        found = weighed(
            payoff[chosen], logging[chosen], target[chosen], model=[target @ model] * 2, predicted=model[chosen]
        )
        assert found.dr is not None
        expected += logging[chosen].prod() * np.array([found.ips.value, found.dr.value])
    assert expected == pytest.approx([target @ payoff] * 2)


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.2, np.nan])
def test_numbers_that_are_no_propensities_are_refused(wrong):
    with pytest.raises(ValueError, match=r"propensity = .*must be 2 probabilities above 0 and at most 1"):
        weighed([1.0, 2.0], [0.5, wrong], [1, 0])


def test_without_any_matching_round_there_is_no_estimate():
    found = weighed([1.0, 2.0], [0.5, 0.5], [0, 0])
    assert (found.matching, found.effective, found.enough) == (0, 0.0, False)
    assert np.isnan(found.snips.value)
