"""Arrays of the caller are copied; labels are matched or refused; what is under a mask is never used."""

import pickle

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from spillover.constraints import Costs
from tests.live.learners import content

ARMS = ("a", "b", "c")
PROBLEM = sp.Problem(n_arms=3, budget=2)
MASKED = np.ma.MaskedArray([0.5, 99.0, 0.0], mask=[False, True, False])


def learners(count: int = 2, arms: tuple[str, ...] | None = ARMS) -> list[sp.Learner]:
    return [sp.Learner(sp.NDCSEM(), PROBLEM, arms=arms) for _ in range(count)]


def by_name(values) -> pd.Series:
    """The same values under their labels, in another order."""
    return pd.Series(dict(zip(ARMS, values, strict=True)))[["c", "a", "b"]]


def by_position(values) -> pd.Series:
    return pd.Series(values).iloc[[2, 0, 1]]


@pytest.mark.parametrize("labelled", [by_name, by_position, pd.Series])
def test_a_series_is_matched_by_its_labels(labelled):
    plain, other = learners()
    x, z, y = [1, 0, 1], [0.25, 0.0, 1.0], [0.25, 0.5, 1.0]
    plain.report(plain.play(x), z, y)
    other.report(other.play(labelled(x)), z=labelled(z), y=labelled(y))
    available = [True, False, True]
    np.testing.assert_array_equal(plain.choose(available), other.choose(labelled(available)))
    assert plain.unavailable == other.unavailable == (1,)
    assert content(plain) == content(other)


def test_names_that_are_available_may_come_as_a_series():
    plain, other = learners()
    plain.choose(available=["c", "a"])
    other.choose(available=pd.Series(["c", "a"]))
    assert plain.unavailable == other.unavailable == (1,)


@pytest.mark.parametrize(
    "call",
    [
        lambda learner, given: learner.play(given),
        lambda learner, given: learner.report(1, z=given, y=[0, 0, 0]),
        lambda learner, given: learner.report(1, z=[0, 0, 0], y=given),
        lambda learner, given: learner.choose(available=given.astype(bool)),
    ],
)
@pytest.mark.parametrize("arms", [ARMS, None])
def test_labels_that_are_not_the_arms_are_refused(call, arms):
    (learner,) = learners(1, arms)
    learner.play()
    before = content(learner)
    for wrong in (["a", "b", "x"], [1, 2, 3], ["a", "a", "b"]):
        with pytest.raises(ValueError, match=r"labels of .* = \[.*\]: must be (the arms|0 to 2)"):
            call(learner, pd.Series([1, 0, 0], index=wrong))
    assert content(learner) == before


def test_names_are_refused_where_they_are_not_known():
    (nameless,) = learners(1, None)
    nameless.play()
    with pytest.raises(ValueError, match=r"labels of z = \['c', 'a', 'b'\]: must be 0 to 2, as the arms have no names"):
        nameless.report(1, z=by_name([0, 0, 0]), y=[0, 0, 0])


def test_the_names_of_the_context_are_not_known_so_labels_are_refused():
    learner = sp.Learner(sp.Uniform(), PROBLEM._replace(context=2))
    learner.choose(context=pd.Series([1.0, 2.0]))
    np.testing.assert_array_equal(learner.context, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"labels of context = \['price', 'month'\]: must be 0 to 1, as the columns"):
        learner.choose(context=pd.Series({"price": 1.0, "month": 2.0}))


@pytest.mark.parametrize(
    "call",
    [
        lambda learner: learner.play(np.ma.MaskedArray([1, 0, 1], mask=[False, True, False])),
        lambda learner: learner.report(1, z=MASKED, y=[0, 0, 0]),
        lambda learner: learner.report(1, z=[0, 0, 0], y=MASKED),
        lambda learner: learner.choose(available=np.ma.MaskedArray([True, True, False], mask=[False, True, False])),
        lambda learner: Costs(MASKED, limit=1),
        lambda learner: sp.metrics.mean_interval(MASKED),
        lambda learner: sp.FixedSEM(adjacency=np.zeros((3, 3)), means=MASKED, budget=1),
    ],
)
def test_masked_entries_are_refused(call):
    (learner,) = learners(1)
    learner.play()
    before = content(learner)
    with pytest.raises(ValueError, match=r"masked entries of .* = \[1\]: must be none"):
        call(learner)
    assert content(learner) == before


def test_a_mask_that_hides_nothing_is_no_matter():
    plain, other = learners()
    plain.report(plain.play([1, 0, 1]), [0.5, 0, 0.25], [0.5, 0, 0.25])
    other.report(other.play(np.ma.MaskedArray([1, 0, 1])), *(np.ma.MaskedArray([0.5, 0, 0.25]) for _ in range(2)))
    assert content(plain) == content(other)


def test_costs_belong_to_their_labels():
    assert Costs(pd.Series({"b": 2.0, "a": 1.0}), limit=2) == Costs({"b": 2.0, "a": 1.0}, limit=2)
    learner = sp.Learner(
        sp.policies.CUCB(), PROBLEM, arms=ARMS, constraints=(Costs(pd.Series({"c": 9, "a": 1, "b": 1}), limit=2),)
    )
    np.testing.assert_array_equal(learner.choose(), [True, True, False])
    with pytest.raises(ValueError, match=r"labels of costs = .*: must be different arms"):
        Costs(pd.Series([1, 2], index=["a", "a"]), limit=2)


def test_what_the_caller_does_with_his_arrays_later_is_his_own():
    plain, other = learners()
    plain.play([1, 0, 1])
    x = np.array([True, False, True])
    other.play(x)
    x[:] = False
    z, y = np.array([0.5, 0.0, 0.25]), np.array([0.5, np.nan, 0.25])
    plain.report(1, z.copy(), y.copy())
    other.report(1, z, y)
    z[:], y[:] = 7.0, 7.0
    for one in (plain, other):
        one.report(1, [0.5, 0.0, 0.25], [np.nan, 0.125, np.nan])
    assert content(plain) == content(other)
    context = np.array([1.0, 2.0])
    learner = sp.Learner(sp.Uniform(), PROBLEM._replace(context=2))
    learner.play(context=context)
    context[:] = 9.0
    np.testing.assert_array_equal(learner.details[1].context, [1.0, 2.0])


def test_the_problem_s_arrays_are_copied():
    weights, limits = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0])
    learner = sp.Learner(sp.policies.CUCB(), PROBLEM._replace(weights=weights, reward_range=limits))
    about = learner.about()
    weights[:], limits[:] = 9.0, 9.0
    assert learner.about() == about
    learner.report(learner.play([1, 0, 0]), [0.5, 0, 0], [0.5, 0, 0])


def test_a_world_keeps_its_own_arrays():
    a, means, baseline = np.array([[0.0, 0.5], [0.0, 0.0]]), [0.9, 0.2], np.array([0.1, 0.2])
    frame = pd.DataFrame(a, index=["p", "q"], columns=["p", "q"])
    for given in (a, frame):
        world = sp.FixedSEM(adjacency=given, means=means, budget=1, baseline=baseline)
        before = (world.matrix(), world.levels(), world.surroundings())
        if given is frame:
            frame.loc["p", "q"] = 0.25
        else:
            a[0, 1] = 0.25
        means[0], baseline[0] = 0.5, 7.0
        np.testing.assert_array_equal(world.matrix(), before[0])
        np.testing.assert_array_equal(world.levels(), before[1])
        assert pickle.dumps(world.surroundings()) == pickle.dumps(before[2])
        a, means[0], baseline[0] = np.array([[0.0, 0.5], [0.0, 0.0]]), 0.9, 0.1
