"""A policy's own decision is refused by name where no policy may make it; a person may play any set."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Unavailable
from spillover.policies import Constrained
from spillover.rng import Purpose
from spillover.types import Choice

WORLD = sp.SyntheticSEM(n_arms=10, budget=4, horizon=20, changes=())
PROBLEM = sp.Problem(n_arms=10, budget=4)
TOO_MANY = r"decision of \w+ = \[1 1 1 1 1 1 1 1 1 1\]: must be at most 4 of the 10 arms, as the problem's budget says"


@dataclass(frozen=True, kw_only=True)
class Decides(sp.NDCSEM):
    """Decides as it is told."""

    how: Any = np.ones_like

    def select(self, state: Any, rng: sp.Rng) -> Choice:
        choice = super().select(state, rng)
        return choice._replace(x=self.how(choice.x))


@dataclass(frozen=True, kw_only=True)
class PlaysAll(sp.policies.CUCB):
    """Plays every arm in its compiled form, and only there."""

    def play_stretch(self, state: Any, stretch: Any, rng: sp.Rng) -> Any:
        played = super().play_stretch(state, stretch, rng)
        stretch.flight.x[:] = True
        return played


def play(policy: Any) -> None:
    world = WORLD.draw(sp.Rng(0).at(Purpose.WORLD))
    list(sp.rounds(policy, world, 0, sp.Rng(0), ()))


def replay(policy: Any) -> Any:
    zeros = np.zeros((3, 10))
    return list(sp.replay(policy, PROBLEM, zeros, zeros, zeros))[-1]


ENTRANCES = {
    "simulate": lambda policy: sp.simulate(policy, WORLD, 2, replications=3),
    "compare": lambda policy: sp.compare([policy, sp.policies.Oracle()], WORLD, 2, replications=2),
    "rounds": play,
    "replay": replay,
    "choose": lambda policy: sp.Learner(policy, PROBLEM).choose(),
    "play": lambda policy: sp.Learner(policy, PROBLEM).play(),
    "explain": lambda policy: sp.Learner(policy, PROBLEM).explain(),
    "many choose": lambda policy: sp.Learners(policy, PROBLEM, seeds=range(3)).choose([1, 2]),
    "many play": lambda policy: sp.Learners(policy, PROBLEM, seeds=range(3)).play(),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_more_arms_than_the_budget_are_refused(entrance):
    with pytest.raises(ValueError, match=TOO_MANY):
        ENTRANCES[entrance](Decides())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_compiled_form_is_checked_too(threads):
    assert PlaysAll().compiled_rounds
    with pytest.raises(ValueError, match=TOO_MANY):
        sp.simulate(PlaysAll(), WORLD, 2, replications=8, threads=threads)


WRONG = {
    "numbers": lambda x: x.astype(float),
    "a list": lambda x: x.tolist(),
    "too short": lambda x: x[..., :-1],
    "another axis": lambda x: x[None],
    "nothing": lambda x: None,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_other_than_booleans_of_the_right_shape_are_refused(entrance, wrong):
    with pytest.raises(ValueError, match=r"decision of \w+ = .*: must be an array of booleans of shape \(.*10,?\)"):
        ENTRANCES[entrance](Decides(how=WRONG[wrong]))


def test_the_row_that_is_wrong_is_shown():
    def last_row(x: Any) -> Any:
        x = x.copy()
        x[-1] = [True] * 5 + [False] * 5
        return x

    with pytest.raises(ValueError, match=r"= \[1 1 1 1 1 0 0 0 0 0\]: must be at most 4"):
        sp.Learners(Decides(how=last_row), PROBLEM, seeds=range(4)).choose()


def test_a_refused_decision_changes_nothing_and_a_person_may_play_any_set():
    learner = sp.Learner(Decides(), PROBLEM)
    with pytest.raises(ValueError, match="decision of"):
        learner.play()
    assert learner.rounds == 0
    everything = sp.Learner(sp.NDCSEM(), PROBLEM)
    assert everything.play(np.ones(10)) == 1


@dataclass(frozen=True, kw_only=True)
class Insists(sp.NDCSEM):
    """Wants the first two arms above all, by its choice and its scores, and notes what is played in the end."""

    seen: ClassVar[list[Any]] = []

    def select(self, state: Any, rng: sp.Rng) -> Choice:
        choice = super().select(state, rng)
        return choice._replace(x=np.broadcast_to(np.arange(10) < 2, choice.x.shape))

    def explain(self, state: Any, rng: sp.Rng) -> Any:
        found = super().explain(state, rng)
        return replace(found, score=np.where(np.arange(10) < 2, 1e9, found.score))

    def played(self, state: Any, x: Any) -> Any:
        self.seen.append(np.array(x))
        return super().played(state, x)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_no_arm_is_decided_that_is_not_available(entrance):
    Insists.seen.clear()
    found = ENTRANCES[entrance](Constrained(policy=Insists(), constraints=(Unavailable([0]),)))
    chosen = getattr(found, "chosen", found)  # of an explanation
    decided = [*Insists.seen, *([chosen] if getattr(chosen, "dtype", None) == np.bool_ else [])]
    assert decided
    assert not any(x[..., 0].any() for x in decided)
    assert any(x[..., 1].any() for x in decided)


def test_an_arm_that_is_not_available_in_this_round_alone():
    learner = sp.Learner(Insists(), PROBLEM)
    assert not learner.choose(available=range(1, 10))[0]
    learner.play()
    assert learner.choose()[0]
    many = sp.Learners(Insists(), PROBLEM, seeds=range(3))
    assert not many.choose(available=np.arange(10) > 0)[:, 0].any()
