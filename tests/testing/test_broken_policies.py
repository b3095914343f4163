"""Each broken policy is caught by the check that is meant for it."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import pytest

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.core.batches import Batches
from spillover.testing import check_policy
from spillover.testing.policies import POLICY_CHECKS, check_edge_shapes
from spillover.testing.trial import Trial
from tests.testing.sound import SMALL, Greedy, GreedyState, Sound, SoundAndOpen, broken, demand_caught, first, then
from tests.testing.test_broken_stretches import StopsTheClock, driven


@dataclass(kw_only=True)
class NotFrozen(Greedy):
    optimism: Any = 0.5


class NotADataclass(Greedy):
    optimism = 0.5


@dataclass(frozen=True)
class Positional(Greedy):
    optimism: Any = 0.5


@dataclass(frozen=True, kw_only=True)
class NoPromise(Sound):
    traits = sp.Traits(order_free=cast(Any, None))


@dataclass(frozen=True, kw_only=True)
class NoUpdate:
    """Three of the four functions."""

    optimism: float = 0.5

    init, score, select, played = Greedy.init, Greedy.score, Greedy.select, Greedy.played


# the state: a leaf without its batch axis, a plain number, words, counts that begin whole and become floats
SharedLeaf = broken(init=then("init", lambda self, state, problem, *_: state._replace(budget=np.array(problem.budget))))
PlainNumber = broken(init=then("init", lambda self, state, problem, *_: state._replace(budget=problem.budget)))
Words = broken(init=then("init", lambda self, state, *_: state._replace(ceiling=np.full(state.budget.shape, "high"))))
GrowingType = broken(
    init=then("init", lambda self, state, *_: state._replace(counts=np.zeros(state.counts.shape, np.int64))),
    played=then("played", lambda self, state, *_: state._replace(counts=state.counts * 1.0)),
)

# the choice: one arm too many, numbers, an arm too few, a memo later on, draws of its own
Numbers = broken(select=then("select", lambda self, choice, *_: sp.Choice(choice.x.astype(int))))
TooNarrow = broken(select=then("select", lambda self, choice, *_: sp.Choice(choice.x[..., :-1])))
SometimesAMemo = broken(
    select=then("select", lambda self, choice, state, rng: choice._replace(memo=memo_of_late_rounds(self, state)))
)
SeedOfItsOwn = broken(
    select=lambda self, state, rng: sp.Choice(
        top_arms(np.random.default_rng(7).random(state.sums.shape), state.budget, rng)
    )
)
FirstOfItsBlock = broken(select=lambda self, state, rng: sp.Choice(top_arms(shifted(state, rng), state.budget, rng)))


@dataclass(frozen=True, kw_only=True)
class Greedier(Sound):
    def select(self, state, rng):
        return sp.Choice(top_arms(self.score(state), state.budget + 1, rng))


def memo_of_late_rounds(policy, state):
    return policy.score(state) if bool((state.rounds > 5).all()) else None


def shifted(state, rng):
    """Scores that depend on which replications are run beside it."""
    shift = rng.keys[..., 1].min().astype(float)
    return np.sin(state.sums + np.arange(5.0) * (1 + shift)) + 2


# the scores: of other learners, on the wrong axis of a grid, of the size of a grid, of a second arm, in one unit
Crowd = broken(score=then("score", lambda self, score, s: score + s.sums.reshape(-1, s.sums.shape[-1]).mean(axis=0)))
GridOnTheWrongAxis = broken(score=lambda self, state: (state.sums + self.optimism) / (state.counts + 1.0))
GridThatMatters = broken(
    score=then("score", lambda self, score, state: score + np.sin(np.size(self.optimism) * np.arange(1.0, 6.0)))
)
NeedsTwoArms = broken(score=then("score", lambda self, score, state: score - 1e-9 * state.sums[..., [1]]))
OptimisticInOneUnit = broken(
    score=lambda self, state: (state.sums + np.asarray(self.optimism)[..., None]) / (state.counts + 1.0)
)


@np.errstate(invalid="ignore")
def zero_by_zero(self, state, before, feedback, rng):
    return state._replace(sums=state.sums / state.counts * state.counts)


@np.errstate(invalid="ignore", divide="ignore")
def divide_by_arms(self, state, before, feedback, rng):
    """Divides by the number of arms that were played."""
    share = feedback.z.sum(axis=-1) / feedback.x.sum(axis=-1)
    return state._replace(ceiling=np.where(feedback.arrived, share, before.ceiling))


@np.errstate(invalid="ignore")
def share_of_best(self, state, before, feedback, rng):
    share = state.sums.max(axis=-1) / state.sums.sum(axis=-1)
    return state._replace(ceiling=np.where(state.rounds > 7, share, state.ceiling))


def add_to(leaf):
    """Change a leaf of the state by what comes with it."""

    def change(self, state, given):
        getattr(state, leaf)[...] += given if isinstance(given, np.ndarray) else 1.0

    return change


def erase(array):
    array[...] = False


ZeroByZero = broken(update=then("update", zero_by_zero))
Shares = broken(update=then("update", divide_by_arms))
NeedsRewards = broken(update=then("update", share_of_best))
SelectLearns = broken(select=first("select", add_to("counts")))
PlayedLearns = broken(played=first("played", add_to("counts")))
PlayedErases = broken(played=first("played", lambda self, state, x: erase(x)))
UpdateErases = broken(update=then("update", lambda self, state, before, feedback, rng: (state, erase(feedback.z))[0]))
ForgetsToLook = broken(traits=sp.Traits(accepts_missing=True))  # accepts missing outcomes, and adds them up


def halve_range(self, problem, *_):
    problem.overall_range[..., 1] *= 0.5


def demand_an_order(self, problem, *_):
    if not problem.acyclic:
        raise ValueError("no order, no policy")


def demand_a_play(self, state, x):
    if not x.any(axis=-1).all():
        raise ValueError("nothing was played")


ShrinksTheProblem = broken(init=first("init", halve_range))
NeedsAnOrder = broken(init=first("init", demand_an_order))
Stubborn = broken(played=first("played", demand_a_play))  # takes no override

GLOBAL = np.random.default_rng(0)
GlobalRng = broken(
    select=lambda self, state, rng: sp.Choice(top_arms(GLOBAL.random(state.sums.shape), state.budget, rng))
)
GlobalRngInUpdate = broken(
    update=then("update", lambda self, state, *_: state._replace(ceiling=GLOBAL.random(state.ceiling.shape)))
)


@dataclass(frozen=True, kw_only=True)
class Diary(Sound):
    """Keeps what it played in itself."""

    pages: Any = field(default_factory=list)

    played = first("played", lambda self, state, x: self.pages.append(int(x.sum())))


NewAttribute = broken(played=first("played", lambda self, state, x: object.__setattr__(self, "last", x)))


@dataclass(frozen=True, kw_only=True)
class NeverForgets(Sound):
    """What it learns outlives the run, outside of the object."""

    seen: ClassVar[list[float]] = []

    def update(self, state, feedback, rng):
        self.seen.append(1.0)
        return super().update(state, feedback, rng)._replace(ceiling=state.ceiling + len(self.seen))


@dataclass(frozen=True, kw_only=True)
class OneAtATime(Sound):
    """Starts afresh in init, so that runs repeat themselves, but learners in turn write on the same page."""

    page: ClassVar[dict[str, int]] = {}

    init = first("init", lambda self, *_: self.page.update(pieces=0))

    def update(self, state, feedback, rng):
        self.page["pieces"] += 1
        return super().update(state, feedback, rng)._replace(ceiling=state.ceiling * 0 + self.page["pieces"])


class HidingState(GreedyState):
    """Carries something that is not a field."""

    bonus: float

    def _replace(self, **changes):
        other = super()._replace(**changes)
        other.bonus = getattr(self, "bonus", 0.0) + 1.0
        return other


Hiding = broken(
    init=then("init", lambda self, state, *_: HidingState(*state)),
    update=then("update", lambda self, after, before, *_: after._replace(ceiling=0 * before.ceiling + bonus(after))),
)


def bonus(state):
    return getattr(state, "bonus", 0.0)


@dataclass(frozen=True, kw_only=True)
class Meddler(sp.policies.Oracle):
    """Makes the world better than it is."""

    for_problem = first(
        "for_problem", lambda self, problem, world: world and world.levels.fill(1.0), sp.policies.Oracle
    )


@dataclass(frozen=True, kw_only=True)
class ByArrival(Sound):
    """Discounts by the time of arrival."""

    def update(self, state, feedback, rng):
        faded = np.where(feedback.arrived[..., None], 0.9, 1.0)
        faded_state = state._replace(sums=state.sums * faded, counts=state.counts * faded)
        return super().update(faded_state, feedback, rng)


@dataclass(frozen=True, kw_only=True)
class HonestByArrival(ByArrival):
    traits = sp.Traits(order_free=False)


@dataclass(frozen=True, kw_only=True)
class OpenByArrival(SoundAndOpen, ByArrival):
    """The same, where the explanation shows it."""


def explaining(change, name="explain"):
    """A policy whose explanation is not what it should be."""
    return broken(SoundAndOpen, **{name: then(name, change, SoundAndOpen)})


def other_scores(self, found, state, rng):
    """Ranks by something else than what it explains."""
    index = rng.uniform(state.sums.shape[-1]) + np.zeros_like(found.index)
    return replace(found, index=index, score=index)


def in_one_unit(self, found, state, rng):
    """Decides alike in all units, and explains in shares of the largest reward."""
    share = found.score / state.ceiling[..., None]
    return replace(found, mean=share, index=share, score=share)


Pretends = explaining(lambda self, found, *_: replace(found, chosen=~found.chosen), "explain_choice")
ExplainLearns = broken(SoundAndOpen, explain=first("explain", add_to("sums"), SoundAndOpen))
OutlinesOthers = explaining(lambda self, found, *_: replace(found, mean=found.mean + 1.0), "outline")
ExplainsOne = explaining(lambda self, found, *_: replace(found, clock=np.asarray(found.clock).ravel()[0]))
ExplainsOtherScores = explaining(other_scores)
ExplainsInOneUnit = explaining(in_one_unit)


@dataclass(frozen=True, kw_only=True)
class CatchesUpTooFast(sp.policies.CUCB):
    """Counts every round of a history, with or without an outcome."""

    @property
    def batches(self):
        return CountsAll(self)


class CountsAll(Batches):
    def catch_up(self, state, rounds, first, rng):
        state = super().catch_up(state, rounds, first, rng)
        state.averages.counts[...] += rounds.x[~rounds.arrived].sum(axis=0)
        return state


@dataclass(frozen=True, kw_only=True)
class NeedsAnArmToSpare(Sound):
    def select(self, state, rng):
        score, budget = self.score(state), int(np.ravel(state.budget)[0])
        if score.shape[-1] == 1:
            return super().select(state, rng)
        order = np.argpartition(-score, budget, axis=-1)[..., :budget]
        x = np.zeros(score.shape, np.bool_)
        np.put_along_axis(x, order, True, axis=-1)
        return sp.Choice(x)


def stops_the_clock():
    return driven(sp.NDCSEM, StopsTheClock)


BROKEN_POLICIES = [
    (NotFrozen, "check_form", "not frozen"),
    (NotADataclass, "check_form", "not a dataclass"),
    (Positional, "check_form", r"\['optimism'\] are not keyword-only"),
    (NoPromise, "check_form", "order_free is None"),
    (NoUpdate, "check_form", "it has no init, select, played or update"),
    (lambda: Sound(optimism=np.ones(2)), "check_form", r"\['optimism'\] hold arrays"),
    (SharedLeaf, "check_state", r"state.budget has shape \(\) for a batch \(3,\)"),
    (PlainNumber, "check_state", "state.budget is a int"),
    (Words, "check_state", "state.ceiling has type <U4"),
    (GrowingType, "check_state", "after round 1 .*state.counts: .*int64.* at first, .*float64"),
    (Greedier, "check_feasible", "in round 1 3 arms, the budget is 2"),
    (Numbers, "check_feasible", "in round 1 int64"),
    (TooNarrow, "check_feasible", r"an array of shape \(3, 4\)"),
    (ZeroByZero, "check_feasible", "after update in round .* NaN in sums"),
    (SometimesAMemo, "check_feasible", "in round 7 with a memo .* after None"),
    (SelectLearns, "check_pure", r"select changed the state in round 1: counts\["),
    (PlayedLearns, "check_pure", r"played changed the state in round 1: counts\["),
    (PlayedErases, "check_pure", r"played changed the decision in round 1: x\["),
    (UpdateErases, "check_pure", r"update changed the feedback in round \d+: z\["),
    (ShrinksTheProblem, "check_pure", "init changed the problem: overall_range"),
    (GlobalRng, "check_pure", "select with the same state and the same rng"),
    (GlobalRngInUpdate, "check_pure", "update of equal copies"),
    (Diary, "check_memory", r"a run changed the attributes \['pages'\]"),
    (NewAttribute, "check_memory", r"a run changed the attributes \['last'\]"),
    (NeverForgets, "check_memory", "a second run with the same seed differs from the first: in round"),
    (GlobalRng, "check_memory", "a second run with the same seed differs from the first: in round 1"),
    (OneAtATime, "check_memory", "two interleaved runs differ from each alone"),
    (Crowd, "check_rows", r"row \(0,\) of a batch \(6,\) differs .* in round"),
    (SeedOfItsOwn, "check_rows", r"row \(1,\) of a batch \(6,\) differs .* in round 1"),
    (Hiding, "check_reload", "a run whose state went through JSON differs: in round"),
    (FirstOfItsBlock, "check_blocks", r"simulate\(first=2, replications=3\) differs"),
    (GridOnTheWrongAxis, "check_grid", "raised ValueError: operands could not be broadcast"),
    (GridThatMatters, "check_grid", r"cell \(0,\) of a grid of equal optimism differs"),
    (Meddler, "check_same_world", "the world differs from the one that another policy meets"),
    (Stubborn, "check_override", "raised ValueError: nothing was played"),
    (Shares, "check_override", "NaN in ceiling"),
    (ByArrival, "check_order", r"arrived in the last round gave|arrived scattered gave|arrived backwards gave"),
    (OpenByArrival, "check_order", r"mean\[0, 0\] is .* against"),
    (Pretends, "check_explanation", "explain in round 1 shows another choice"),
    (OutlinesOthers, "check_explanation", "outline in round 1 differs from explain"),
    (ExplainLearns, "check_explanation", "explain in round 1 changed the state"),
    (ExplainsOne, "check_explanation", r"gives clock the shape \(\)"),
    (ExplainsOtherScores, "check_explanation", "has a score of .* that is not chosen"),
    (OptimisticInOneUnit, "check_units", "with rewards and ranges times 1024 it decides differently"),
    (ExplainsInOneUnit, "check_units", r"divided by that, differ: mean\[0, 0\] is"),
    (CatchesUpTooFast, "check_catch_up", r"averages.counts\[\d\] is .* against"),
    (stops_the_clock, "check_stretches", r"stretches of rounds with batch \(\) and .* differ .*state.clock"),
    (ForgetsToLook, "check_parts", "after update in round .* there is NaN in sums"),
    (NeedsTwoArms, "check_edge_shapes", "with one arm, batch .*IndexError"),
    (NeedsAnArmToSpare, "check_edge_shapes", "with a budget for all arms, batch .*ValueError"),
    (NeedsRewards, "check_edge_shapes", "with rewards that are all zero, batch .*NaN in ceiling"),
    (NeedsAnOrder, "check_edge_shapes", "with a cycle, batch .*no order, no policy"),
]


@pytest.mark.parametrize(
    ("make", "check", "message"), BROKEN_POLICIES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_policy_is_caught_by_its_check(make, check, message):
    demand_caught(make, check, message, (*POLICY_CHECKS, check_edge_shapes), check_policy, Trial(SMALL, 0))


def test_every_check_of_a_policy_has_something_that_it_catches():
    assert {check for _, check, _ in BROKEN_POLICIES} == {f.__name__ for f in (*POLICY_CHECKS, check_edge_shapes)}


def test_an_honest_policy_is_excused_from_order():
    check_policy(HonestByArrival())


def test_a_message_names_the_policy_the_numbers_the_remedy_and_the_check():
    with pytest.raises(AssertionError) as caught:
        check_policy(Greedier())
    text = str(caught.value)
    assert text.startswith("Greedier: select chose in round 1 3 arms, the budget is 2.")
    assert text.endswith("To fix it: choose at most problem.budget arms. [check_feasible]")
