"""Worlds in other units, and policies that are wrong about the delay."""

import numpy as np
import pytest

import spillover as sp
from spillover.testing import check_environment
from spillover_studies.beyond.variants import MisdatedNDCSEM, MisdatedSwitchingSEM, SyntheticInUnits


def test_a_world_in_other_units_is_sound():
    check_environment(SyntheticInUnits(unit=100.0, horizon=20, changes=(10,)))


def test_only_the_units_are_others():
    plain, other = sp.SyntheticSEM(horizon=40, changes=(20,)), SyntheticInUnits(unit=8.0, horizon=40, changes=(20,))
    runs = [sp.simulate(sp.Uniform(), world, 5, replications=3, seed=1) for world in (plain, other)]
    for name in ("regret", "payoff"):
        np.testing.assert_array_equal(8.0 * getattr(runs[0], name), getattr(runs[1], name))
    np.testing.assert_array_equal(runs[0].optimality_ratio, runs[1].optimality_ratio)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("inf"), float("nan")])
def test_a_unit_is_a_positive_number(unit):
    with pytest.raises(ValueError, match="unit = "):
        SyntheticInUnits(unit=unit)


@pytest.mark.parametrize(("policy", "plain"), [(MisdatedNDCSEM, sp.NDCSEM), (MisdatedSwitchingSEM, sp.SwitchingSEM)])
def test_a_delay_that_is_assumed_rightly_changes_nothing_and_another_one_does(policy, plain):
    world = sp.SyntheticSEM(horizon=300, changes=(150,))
    right, wrong, dated = (
        sp.simulate(each, world, 20, replications=3, seed=4).regret
        for each in (policy(assumed=20), policy(assumed=120), plain())
    )
    np.testing.assert_array_equal(right, dated)
    assert not np.array_equal(wrong, dated)
    with pytest.raises(ValueError, match="assumed = "):
        policy(assumed=-1)
