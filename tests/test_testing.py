"""The checks that ship: what is sound passes, and everything that is broken on purpose is caught by its own check."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import Delay, Policy
from spillover.environments import SEMWorld
from spillover.graph import SparseGraph
from spillover.set_search import top_arms
from spillover.testing import check_delay, check_environment, check_policy
from spillover.testing.delays import DELAY_CHECKS
from spillover.testing.environments import ENVIRONMENT_CHECKS
from spillover.testing.policies import POLICY_CHECKS, check_edge_shapes
from spillover.testing.trial import Trial
from spillover.types import Explanation
from tests.support import sparse

SMALL = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,), law="beta")


# --- what is sound passes --------------------------------------------------------------------------------------------


class GreedyState(NamedTuple):
    rounds: Any
    sums: Any
    counts: Any
    budget: Any
    ceiling: Any


class Greedy(Policy):
    """A sound policy without a graph: the highest means, a little optimistic about arms that were played rarely."""

    order_free: Any = True
    grids = ("optimism",)
    optimism: Any

    def init(self, problem, rng, batch=()):
        line = (*batch, problem.n_arms)
        ceiling = np.broadcast_to(problem.overall_range, (*batch, 2))[..., 1].copy()
        budget = np.full(batch, problem.budget)
        return GreedyState(np.zeros(batch, np.int64), np.zeros(line), np.zeros(line), budget, ceiling)

    def score(self, state):
        return (state.sums + np.asarray(self.optimism)[..., None]) / (state.counts + 1.0)

    def select(self, state, rng):
        return sp.Choice(top_arms(self.score(state), state.budget, rng))

    def played(self, state, x):
        return state._replace(rounds=state.rounds + 1)

    def update(self, state, feedback, rng):
        arrived = feedback.arrived[..., None]
        sums = state.sums + np.where(arrived, feedback.z, 0.0)
        return state._replace(sums=sums, counts=state.counts + (arrived & feedback.x))


@dataclass(frozen=True, kw_only=True)
class Sound(Greedy):
    optimism: Any = 0.5


@dataclass(frozen=True, kw_only=True)
class SoundAndOpen(Sound):
    """The same with an explanation."""

    explains = True

    def explain(self, state, rng):
        n = state.sums.shape[-1]
        score = self.score(state)
        return Explanation(
            mean=state.sums / np.maximum(state.counts, 1.0),
            count=state.counts.copy(),
            clock=np.asarray(state.rounds, float),
            index=score,
            adjacency=np.zeros((*state.sums.shape, n)),
            gain=np.ones_like(score),
            weights=np.ones_like(score),
            score=score,
        )


@dataclass(frozen=True, kw_only=True)
class SoundWithMemo(Sound):
    """The same, reminded of how sure it was."""

    def select(self, state, rng):
        return super().select(state, rng)._replace(memo=self.score(state))

    def update(self, state, feedback, rng):
        known = np.where(feedback.arrived[..., None], feedback.memo, 0.0)
        return super().update(state, feedback, rng)._replace(ceiling=state.ceiling + known.max(axis=-1))


@dataclass(frozen=True, kw_only=True)
class FourFunctionsAlone:
    """The four functions, without the base class."""

    optimism: float = 0.5

    init, score, select = Greedy.init, Greedy.score, Greedy.select
    played, update = Greedy.played, Greedy.update


def test_four_functions_alone_are_a_policy():
    ours, theirs = (sp.simulate(p, SMALL, 3, replications=2) for p in (FourFunctionsAlone(), Sound()))
    np.testing.assert_array_equal(ours.regret, theirs.regret)
    learner = sp.Learner(FourFunctionsAlone(), sp.Problem(3, 1, overall_range=(0.0, 1.0)))
    learner.report(learner.play(), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    with pytest.raises(TypeError, match=r"must explain itself to give reasons"):
        learner.explain()


@pytest.mark.parametrize("name", sp.policies.POLICIES)
def test_every_registered_policy_passes(name):
    check_policy(sp.policies.POLICIES[name]())


@pytest.mark.parametrize(
    "policy",
    [
        sp.NDCSEM(graph="self-tuned"),
        sp.NDCSEM(discount=0.7, exploration=0.1, graph=sparse(1.0)),
        Sound(),
        SoundAndOpen(),
        SoundWithMemo(),
        FourFunctionsAlone(),
    ],
    ids=["auto", "explorer", "sound", "open", "memo", "without the base class"],
)
def test_other_settings_and_other_peoples_policies_pass(policy):
    check_policy(policy, seed=3)


def test_a_policy_can_be_checked_in_a_world_of_choice():
    cyclic = sp.FixedSEM(
        adjacency=[[0, 0.3, 0], [0, 0, 0.3], [0.5, 0, 0]],
        means=[0.4, 0.5, 0.6],
        budget=2,
        horizon=20,
        acyclic=False,
    )
    check_policy(sp.NDCSEM(), environment=cyclic)
    bound_to_three = sp.NDCSEM(graph=SparseGraph(forbidden=np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])))
    check_policy(bound_to_three, environment=cyclic, edge_shapes=False)
    with pytest.raises(AssertionError, match=r"with one arm.*forbidden"):
        check_policy(bound_to_three, environment=cyclic)


ENVIRONMENTS: dict[str, Any] = {
    "paper": sp.SyntheticSEM(),
    "small": SMALL,
    "drifting": sp.SyntheticSEM(n_arms=6, horizon=60, changes=(20, 40), smooth=True, law="beta"),
    "everything": sp.SyntheticSEM(
        n_arms=6, budget=3, horizon=60, changes=(20,), graph_changes=(10, 45), noise=0.3, gain_range=(0.5, 2.0)
    ),
    "one arm": sp.SyntheticSEM(n_arms=1, budget=1, horizon=1, changes=()),
    "example": sp.environments.example_graph(),
    "nothing": sp.FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=5),
    "cycle": sp.FixedSEM(adjacency=[[0, 0.5], [0.5, 0]], means=[0.3, 0.3], budget=1, acyclic=False),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_passes(name):
    check_environment(ENVIRONMENTS[name])


@pytest.mark.parametrize(
    "delay",
    [
        sp.ConstantDelay(0),
        sp.UniformDelay(2, 9),
        sp.GeometricDelay(3.5),
        sp.GeometricDelay(0),
        sp.LossyDelay(sp.UniformDelay(0, 3), 0.5),
        sp.RecordedDelay(np.r_[np.arange(19.0), np.nan]),
        sp.RecordedDelay(np.arange(120).reshape(6, 20)),
    ],
    ids=repr,
)
def test_every_delay_passes(delay):
    check_delay(delay)


# --- broken policies -------------------------------------------------------------------------------------------------


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
    def explain_choice(self, state, rng):
        found = super().explain_choice(state, rng)
        return replace(found, chosen=~found.chosen)


@dataclass(frozen=True, kw_only=True)
class ExplainLearns(SoundAndOpen):
    def explain(self, state, rng):
        state.sums[...] += 1.0
        return super().explain(state, rng)


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
class NeedsAnOrder(Sound):
    def init(self, problem, rng, batch=()):
        if not problem.acyclic:
            raise ValueError("no order, no policy")
        return super().init(problem, rng, batch)


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
    (ExplainLearns, "check_explanation", "explain in round 1 changed the state"),
    (ExplainsOne, "check_explanation", r"gives clock the shape \(\)"),
    (ExplainsOtherScores, "check_explanation", "has a score of .* that is not chosen"),
    (CatchesUpTooFast, "check_catch_up", r"counts\[\d\] is .* against"),
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


# --- broken environments ---------------------------------------------------------------------------------------------


def world_with(**methods: Any) -> Callable[[], Any]:
    """An environment whose worlds have other methods."""
    kind = type("BrokenWorld", (SEMWorld,), methods)

    @dataclass(frozen=True, kw_only=True)
    class Broken(sp.SyntheticSEM):
        def draw(self, rng, batch=()):
            world = super().draw(rng, batch)
            return kind(**{f.name: getattr(world, f.name) for f in fields(world)})

    return lambda: Broken(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,))


def play_with(change: Callable[..., Any]) -> Any:
    """`play` with something done to its outcome."""

    def play(self, t, x, rng):
        outcome = SEMWorld.play(self, t, x, rng)
        return change(x, outcome.z.copy(), outcome.y.copy())

    return play


def idle_rewards(x, z, y):
    return sp.Outcome(np.where(x, z, 0.25), y)


def crowded_rewards(x, z, y):
    return sp.Outcome(z / (1.0 + x.sum(axis=-1, keepdims=True)), y)


def erase_decision(x, z, y):
    x[...] = False
    return sp.Outcome(z, y)


def best_but(change: Callable[[Any], Any]) -> Any:
    return lambda self, t: change(SEMWorld.best(self, t))


def narrow_problem(self):
    problem = SEMWorld.problem.func(self)  # type: ignore[attr-defined]
    return problem._replace(overall_range=np.asarray(problem.overall_range) * 0.5)


def refuse_axes(self, t, x):
    if x.ndim > 2:
        raise ValueError("too many axes")
    return SEMWorld.expected(self, t, x)


def average_over_axes(self, t, x):
    value = SEMWorld.expected(self, t, x)
    return value if x.ndim <= 2 else value * 0 + value.mean(axis=(0, 1))


def batch_means(self, t):
    means = SEMWorld.means(self, t)
    return means if means.ndim == 1 else means * 0 + means.mean(axis=0)


@dataclass(kw_only=True)
class ThawedEnvironment:
    def draw(self, rng, batch=()):
        return SMALL.draw(rng, batch)


@dataclass(frozen=True, kw_only=True)
class NoWorld:
    def draw(self, rng, batch=()):
        return None


@dataclass(frozen=True, kw_only=True)
class OwnGenerator(sp.SyntheticSEM):
    """Draws its means from a generator of its own."""

    generator: Any = field(default_factory=lambda: np.random.default_rng(0))

    def draw_means(self, rng, batch):
        return self.generator.random((*batch, len(self.changes) + 1, self.n_arms))


BROKEN_ENVIRONMENTS = [
    (ThawedEnvironment, "check_world_form", "not frozen"),
    (NoWorld, "check_world_form", "draw returned NoneType, which is not a ScoredWorld"),
    (world_with(changes=property(lambda self: (12, 31), lambda self, value: None)), "check_world_form", r"\(12, 31\)"),
    (world_with(changes=property(lambda self: (12, 9), lambda self, value: None)), "check_world_form", r"\(12, 9\)"),
    (
        world_with(adjacency=lambda self, t: SEMWorld.adjacency(self, t).swapaxes(-1, -2)),
        "check_world_form",
        "not strictly upper triangular",
    ),
    (world_with(adjacency=lambda self, t: self.graphs), "check_world_form", r"adjacency\(1\) has shape \(6, 1, 5, 5\)"),
    (
        world_with(adjacency=lambda self, t: SEMWorld.adjacency(self, t) * np.nan),
        "check_world_form",
        r"adjacency\(1\) is not finite",
    ),
    (world_with(weights=lambda self, t: np.ones(5)), "check_world_form", r"weights\(1\) has shape \(5,\)"),
    (OwnGenerator, "check_world_rows", "alone differs from its row in a batch"),
    (world_with(means=batch_means), "check_world_rows", "replication 0 alone differs from its row"),
    (world_with(best=best_but(lambda x: np.ones_like(x))), "check_best", r"best\(1\) has 5 arms, the budget is 2"),
    (world_with(best=best_but(lambda x: x.astype(int))), "check_best", r"best\(1\) is int64"),
    (world_with(best=best_but(lambda x: np.roll(x, 1, axis=-1))), "check_best", "best has expected payoff .* more"),
    (world_with(matches=lambda self, t, x: x.sum(axis=-1) * 0), "check_best", r"matches\(1, best\(1\)\) is \[0 0"),
    (world_with(play=play_with(idle_rewards)), "check_outcomes", r"not played has z = 0.25"),
    (
        world_with(play=play_with(lambda x, z, y: sp.Outcome(z * 2, y))),
        "check_outcomes",
        r"z = \[2.\] is outside of reward_range",
    ),
    (world_with(play=play_with(crowded_rewards)), "check_outcomes", "depends on what else is played"),
    (world_with(play=play_with(lambda x, z, y: sp.Outcome(z, y * np.nan))), "check_outcomes", "y is not finite"),
    (world_with(play=play_with(erase_decision)), "check_outcomes", r"play\(1\) changed the decision"),
    (world_with(problem=property(narrow_problem)), "check_outcomes", "is outside of overall_range"),
    (
        world_with(expected=lambda self, t, x: 1.15 * SEMWorld.expected(self, t, x)),
        "check_expected",
        r"mean payoff .* over 400 draws is .*, the expected one",
    ),
    (world_with(expected=refuse_axes), "check_leading_axes", "raised ValueError: too many axes"),
    (world_with(expected=average_over_axes), "check_leading_axes", r"decision \(0, 0\) of a \(2, 3\) array"),
]


@pytest.mark.parametrize(
    ("make", "check", "message"), BROKEN_ENVIRONMENTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_broken_environment_is_caught_by_its_check(make, check, message):
    checks = {function.__name__: function for function in ENVIRONMENT_CHECKS}
    if "raised" not in message:
        with pytest.raises(AssertionError, match=message):
            checks[check](make(), 0, 400)
    with pytest.raises(AssertionError, match=r"\[check_\w+\]$") as caught:
        check_environment(make())
    if "raised" in message:
        assert caught.match(message)


def test_every_check_of_an_environment_has_something_that_it_catches():
    assert {check for _, check, _ in BROKEN_ENVIRONMENTS} == {f.__name__ for f in ENVIRONMENT_CHECKS}


# --- broken delays ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DelayOf(Delay):
    function: Callable[..., Any]

    def draw(self, t, rng, batch=()):
        return self.function(t, rng, batch)


def one_more_each_time(memory: list[int]) -> Callable[..., Any]:
    def draw(t, rng, batch):
        memory.append(t)
        return np.full(batch, len(memory))

    return draw


def shuffled_in_its_batch(t, rng, batch):
    return np.argsort(rng.uniform(1)[..., 0], axis=-1) if batch else np.array(0)


BROKEN_DELAYS = [
    (lambda t, rng, batch: np.full(batch, 2.0), "check_delay_values", r"draw\(1\) with batch \(\) gave float64"),
    (lambda t, rng, batch: 3, "check_delay_values", "gave int"),
    (lambda t, rng, batch: np.full(batch, 5 - t), "check_delay_values", r"draw\(6\) with batch \(\) gave -1"),
    (lambda t, rng, batch: np.array(1), "check_delay_values", r"with batch \(6,\) gave shape \(\)"),
    (lambda t, rng, batch: GLOBAL.integers(0, 100, batch), "check_delay_rows", "a second draw of round"),
    (one_more_each_time([]), "check_delay_rows", "a second draw of round"),
    (shuffled_in_its_batch, "check_delay_rows", "alone differs from its row in a batch"),
]


@pytest.mark.parametrize(("function", "check", "message"), BROKEN_DELAYS)
def test_a_broken_delay_is_caught_by_its_check(function, check, message):
    checks = {f.__name__: f for f in DELAY_CHECKS}
    with pytest.raises(AssertionError, match=message):
        checks[check](DelayOf(function), 0, 20, 6)
    with pytest.raises(AssertionError, match=r"^DelayOf: .*\[check_\w+\]$"):
        check_delay(DelayOf(function))


def test_an_object_that_cannot_be_drawn_from_is_a_broken_delay():
    with pytest.raises(AssertionError, match=r"object: raised AttributeError.*draw.*\[check_delay_values\]"):
        check_delay(object())  # type: ignore[arg-type]
