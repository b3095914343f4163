"""Each broken policy is caught by the check that is meant for it."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.testing import check_policy
from spillover.testing.policies import POLICY_CHECKS, check_edge_shapes
from spillover.testing.trial import Trial
from tests.testing.sound import SMALL, Greedy, GreedyState, Sound, SoundAndOpen
from tests.testing.test_broken_stretches import StopsTheClock


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
    order_free: Any = None


@dataclass(frozen=True, kw_only=True)
class NoUpdate:
    """Three of the four functions."""

    optimism: float = 0.5

    init, score, select, played = Greedy.init, Greedy.score, Greedy.select, Greedy.played


@dataclass(frozen=True, kw_only=True)
class SharedLeaf(Sound):
    """Drops the batch axis of a leaf."""

    def init(self, problem, rng, batch=()):
        return super().init(problem, rng, batch)._replace(budget=np.array(problem.budget))


@dataclass(frozen=True, kw_only=True)
class PlainNumber(Sound):
    def init(self, problem, rng, batch=()):
        return super().init(problem, rng, batch)._replace(budget=problem.budget)


@dataclass(frozen=True, kw_only=True)
class Words(Sound):
    def init(self, problem, rng, batch=()):
        return super().init(problem, rng, batch)._replace(ceiling=np.full(batch, "high"))


@dataclass(frozen=True, kw_only=True)
class GrowingType(Sound):
    """Counts begin as whole numbers and become floats."""

    def init(self, problem, rng, batch=()):
        return super().init(problem, rng, batch)._replace(counts=np.zeros((*batch, problem.n_arms), np.int64))

    def played(self, state, x):
        return super().played(state, x)._replace(counts=state.counts * 1.0)


@dataclass(frozen=True, kw_only=True)
class Greedier(Sound):
    """One arm too many."""

    def select(self, state, rng):
        return sp.Choice(top_arms(self.score(state), state.budget + 1, rng))


@dataclass(frozen=True, kw_only=True)
class Numbers(Sound):
    def select(self, state, rng):
        return sp.Choice(super().select(state, rng).x.astype(int))


@dataclass(frozen=True, kw_only=True)
class TooNarrow(Sound):
    def select(self, state, rng):
        return sp.Choice(super().select(state, rng).x[..., :-1])


@dataclass(frozen=True, kw_only=True)
class ZeroByZero(Sound):
    def update(self, state, feedback, rng):
        state = super().update(state, feedback, rng)
        with np.errstate(invalid="ignore"):
            return state._replace(sums=state.sums / state.counts * state.counts)


@dataclass(frozen=True, kw_only=True)
class SometimesAMemo(Sound):
    def select(self, state, rng):
        late = bool((state.rounds > 5).all())
        return super().select(state, rng)._replace(memo=self.score(state) if late else None)


@dataclass(frozen=True, kw_only=True)
class Crowd(Sound):
    """Looks at the other learners of its batch."""

    def score(self, state):
        return super().score(state) + state.sums.reshape(-1, state.sums.shape[-1]).mean(axis=0)


@dataclass(frozen=True, kw_only=True)
class SeedOfItsOwn(Sound):
    """Repeats itself, but one learner's draws depend on how many others there are."""

    def select(self, state, rng):
        draws = np.random.default_rng(7).random(state.sums.shape)
        return sp.Choice(top_arms(draws, state.budget, rng))


@dataclass(frozen=True, kw_only=True)
class SelectLearns(Sound):
    def select(self, state, rng):
        choice = super().select(state, rng)
        state.counts[...] += choice.x
        return choice


@dataclass(frozen=True, kw_only=True)
class PlayedLearns(Sound):
    def played(self, state, x):
        state.counts[...] += x
        return super().played(state, x)


@dataclass(frozen=True, kw_only=True)
class PlayedErases(Sound):
    def played(self, state, x):
        x[...] = False
        return super().played(state, x)


@dataclass(frozen=True, kw_only=True)
class UpdateErases(Sound):
    def update(self, state, feedback, rng):
        state = super().update(state, feedback, rng)
        feedback.z[...] = 0.0
        return state


@dataclass(frozen=True, kw_only=True)
class ShrinksTheProblem(Sound):
    def init(self, problem, rng, batch=()):
        problem.overall_range[..., 1] *= 0.5
        return super().init(problem, rng, batch)


GLOBAL = np.random.default_rng(0)


@dataclass(frozen=True, kw_only=True)
class GlobalRng(Sound):
    def select(self, state, rng):
        return sp.Choice(top_arms(GLOBAL.random(state.sums.shape), state.budget, rng))


@dataclass(frozen=True, kw_only=True)
class GlobalRngInUpdate(Sound):
    def update(self, state, feedback, rng):
        return super().update(state, feedback, rng)._replace(ceiling=GLOBAL.random(state.ceiling.shape))


@dataclass(frozen=True, kw_only=True)
class Diary(Sound):
    """Keeps what it played in itself."""

    pages: Any = field(default_factory=list)

    def played(self, state, x):
        self.pages.append(int(x.sum()))
        return super().played(state, x)


@dataclass(frozen=True, kw_only=True)
class NewAttribute(Sound):
    def played(self, state, x):
        object.__setattr__(self, "last", x)
        return super().played(state, x)


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

    def init(self, problem, rng, batch=()):
        self.page["pieces"] = 0
        return super().init(problem, rng, batch)

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


@dataclass(frozen=True, kw_only=True)
class Hiding(Sound):
    def init(self, problem, rng, batch=()):
        return HidingState(*super().init(problem, rng, batch))

    def update(self, state, feedback, rng):
        after = super().update(state, feedback, rng)
        return after._replace(ceiling=state.ceiling * 0 + getattr(after, "bonus", 0.0))


@dataclass(frozen=True, kw_only=True)
class FirstOfItsBlock(Sound):
    """Depends on which replications are run beside it."""

    def select(self, state, rng):
        shift = rng.keys[..., 1].min().astype(float)
        return sp.Choice(top_arms(np.sin(state.sums + np.arange(5.0) * (1 + shift)) + 2, state.budget, rng))


@dataclass(frozen=True, kw_only=True)
class GridOnTheWrongAxis(Sound):
    def score(self, state):
        return (state.sums + self.optimism) / (state.counts + 1.0)


@dataclass(frozen=True, kw_only=True)
class GridThatMatters(Sound):
    """A grid is not the same as its cells."""

    def score(self, state):
        return super().score(state) + np.sin(np.size(self.optimism) * np.arange(1.0, 6.0))


@dataclass(frozen=True, kw_only=True)
class Meddler(sp.policies.Oracle):
    """Makes the world better than it is."""

    def with_world(self, world):
        world.levels[...] = 1.0
        return super().with_world(world)


@dataclass(frozen=True, kw_only=True)
class Stubborn(Sound):
    """Takes no override."""

    def played(self, state, x):
        if not x.any(axis=-1).all():
            raise ValueError("nothing was played")
        return super().played(state, x)


@dataclass(frozen=True, kw_only=True)
class Shares(Sound):
    """Divides by the number of arms that were played."""

    def update(self, state, feedback, rng):
        with np.errstate(invalid="ignore", divide="ignore"):
            share = feedback.z.sum(axis=-1) / feedback.x.sum(axis=-1)
        state = super().update(state, feedback, rng)
        return state._replace(ceiling=np.where(feedback.arrived, share, state.ceiling))


@dataclass(frozen=True, kw_only=True)
class ByArrival(Sound):
    """Discounts by the time of arrival."""

    def update(self, state, feedback, rng):
        faded = np.where(feedback.arrived[..., None], 0.9, 1.0)
        faded_state = state._replace(sums=state.sums * faded, counts=state.counts * faded)
        return super().update(faded_state, feedback, rng)


@dataclass(frozen=True, kw_only=True)
class HonestByArrival(ByArrival):
    order_free: Any = False


@dataclass(frozen=True, kw_only=True)
class OpenByArrival(SoundAndOpen, ByArrival):
    """The same, where the explanation shows it."""


@dataclass(frozen=True, kw_only=True)
class Pretends(SoundAndOpen):
    def explain_choice(self, state, rng, known=None):
        found = super().explain_choice(state, rng, known)
        return replace(found, chosen=~found.chosen)


@dataclass(frozen=True, kw_only=True)
class ExplainLearns(SoundAndOpen):
    def explain(self, state, rng):
        state.sums[...] += 1.0
        return super().explain(state, rng)


@dataclass(frozen=True, kw_only=True)
class OutlinesOthers(SoundAndOpen):
    def outline(self, state, rng):
        found = super().outline(state, rng)
        return replace(found, mean=found.mean + 1.0)


@dataclass(frozen=True, kw_only=True)
class ExplainsOne(SoundAndOpen):
    def explain(self, state, rng):
        found = super().explain(state, rng)
        return replace(found, clock=np.asarray(found.clock).ravel()[0])


@dataclass(frozen=True, kw_only=True)
class ExplainsOtherScores(SoundAndOpen):
    """Ranks by something else than what it explains."""

    def explain(self, state, rng):
        found = super().explain(state, rng)
        index = rng.uniform(state.sums.shape[-1]) + np.zeros_like(found.index)
        return replace(found, index=index, score=index)


@dataclass(frozen=True, kw_only=True)
class CatchesUpTooFast(Sound):
    """Counts every round of a history, with or without an outcome."""

    def catch_up(self, state, rounds, first, rng):
        state = super().catch_up(state, rounds, first, rng)
        return state._replace(counts=state.counts + rounds.x[~rounds.arrived].sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class NeedsTwoArms(Sound):
    def score(self, state):
        return super().score(state) - 1e-9 * state.sums[..., [1]]


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


@dataclass(frozen=True, kw_only=True)
class NeedsRewards(Sound):
    def update(self, state, feedback, rng):
        state = super().update(state, feedback, rng)
        with np.errstate(invalid="ignore"):
            share = state.sums.max(axis=-1) / state.sums.sum(axis=-1)
        late = state.rounds > 7
        return state._replace(ceiling=np.where(late, share, state.ceiling))


@dataclass(frozen=True, kw_only=True)
class OptimisticInOneUnit(Sound):
    """Adds half a reward, whatever a reward is."""

    def score(self, state):
        return (state.sums + np.asarray(self.optimism)[..., None]) / (state.counts + 1.0)


@dataclass(frozen=True, kw_only=True)
class ExplainsInOneUnit(SoundAndOpen):
    """Decides alike in all units, and explains in shares of the largest reward."""

    def explain(self, state, rng):
        found = super().explain(state, rng)
        share = found.score / state.ceiling[..., None]
        return replace(found, mean=share, index=share, score=share)


@dataclass(frozen=True, kw_only=True)
class NeedsAnOrder(Sound):
    def init(self, problem, rng, batch=()):
        if not problem.acyclic:
            raise ValueError("no order, no policy")
        return super().init(problem, rng, batch)


@dataclass(frozen=True, kw_only=True)
class ForgetsToLook(Sound):
    """Accepts missing outcomes, and adds them up."""

    accepts_missing = True


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
    (CatchesUpTooFast, "check_catch_up", r"counts\[\d\] is .* against"),
    (StopsTheClock, "check_stretches", r"stretches of rounds with batch \(\) and .* differ .*state.clock"),
    (ForgetsToLook, "check_parts", "after update in round .* there is NaN in sums"),
    (NeedsTwoArms, "check_edge_shapes", "with one arm, batch .*IndexError"),
    (NeedsAnArmToSpare, "check_edge_shapes", "with a budget for all arms, batch .*ValueError"),
    (NeedsRewards, "check_edge_shapes", "with rewards that are all zero, batch .*NaN in ceiling"),
    (NeedsAnOrder, "check_edge_shapes", "with a cycle, batch .*no order, no policy"),
]


@pytest.mark.parametrize(
    ("make", "check", "message"), BROKEN_POLICIES, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_broken_policy_is_caught_by_its_check(make, check, message):
    checks = {function.__name__: function for function in (*POLICY_CHECKS, check_edge_shapes)}
    if "raised" not in message:
        with pytest.raises(AssertionError, match=message):
            checks[check](make(), Trial(SMALL, 0))
    with pytest.raises(AssertionError, match=r"\[check_\w+\]$") as caught:
        check_policy(make())
    if "raised" in message:
        assert caught.match(message)


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
