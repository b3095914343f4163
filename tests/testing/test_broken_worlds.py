"""Each broken environment and delay is caught by the check that is meant for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import Delay
from spillover.environments import SEMWorld
from spillover.testing import check_delay, check_environment
from spillover.testing.environments import DELAY_CHECKS, ENVIRONMENT_CHECKS
from tests.testing.sound import SMALL, demand_caught
from tests.testing.test_broken_stretches import one_match_more


def world_with(fields_of_world: dict[str, Any] | None = None, **methods: Any) -> Callable[[], Any]:
    """An environment whose worlds have other methods."""
    kind = type("BrokenWorld", (SEMWorld,), methods)

    @dataclass(frozen=True, kw_only=True)
    class Broken(sp.SyntheticSEM):
        def draw(self, rng, batch=()):
            world = super().draw(rng, batch)
            return kind(**{f.name: getattr(world, f.name) for f in fields(world)})

    return lambda: Broken(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,), **(fields_of_world or {}))


CONTEXT: dict[str, Any] = {"context": 2, "baseline": True}


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


def remember(self, t, x, rng):
    """Outcomes shrink with every set that was played before."""
    self.cache["played"] = self.cache.get("played", 0) + 1
    outcome = SEMWorld.play(self, t, x, rng)
    return outcome._replace(y=outcome.y / self.cache["played"])


def round_batches(self, t, x, rng):
    """Sums in another order, as a product of larger matrices may have: the last bits depend on the batch."""
    outcome = SEMWorld.play(self, t, x, rng)
    return outcome._replace(y=outcome.y * (1.0 + 1e-15 * x.ndim))


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
    (world_with(play=remember), "check_no_memory", "round 1 brings something else after other decisions were played"),
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
    (world_with(CONTEXT, context=lambda self, t: np.zeros(2)), "check_context", r"context\(1\) has shape \(2,\)"),
    (world_with(CONTEXT, context=lambda self, t: np.full((6, 2), np.nan)), "check_context", "is not finite"),
    (
        world_with(CONTEXT, play=play_with(lambda x, z, y: sp.Outcome(z, y, np.zeros((6, 2))))),
        "check_context",
        "the context of round 1 differs in the outcome",
    ),
    (
        world_with(CONTEXT, expected=lambda self, t, x: 1.1 * SEMWorld.expected(self, t, x)),
        "check_context",
        r"scores\(1, 1\) are not the expected payoffs",
    ),
    (
        world_with(CONTEXT, expected=lambda self, t, x: SEMWorld.expected(self, t, x) + 5.0),
        "check_expected",
        "the expected one",
    ),
    (
        world_with({"observes": "overall"}, play=play_with(lambda x, z, y: sp.Outcome(np.zeros_like(z), y))),
        "check_outcomes",
        "z is not NaN",
    ),
    (
        world_with({"observes": "payoff"}, play=play_with(lambda x, z, y: sp.Outcome(z, y + 1.0))),
        "check_outcomes",
        "y shows more than the payoff",
    ),
    (world_with(score_rounds=one_match_more), "check_course", "score_rounds differs from expected, best and matches"),
    (world_with(expected=refuse_axes), "check_leading_axes", "raised ValueError: too many axes"),
    (world_with(expected=average_over_axes), "check_leading_axes", r"decision \(0, 0\) of a \(2, 3\) array"),
]


@pytest.mark.parametrize(
    ("make", "check", "message"), BROKEN_ENVIRONMENTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_broken_environment_is_caught_by_its_check(make, check, message):
    demand_caught(make, check, message, ENVIRONMENT_CHECKS, check_environment, 0, 400)


def test_rounding_is_no_difference():
    check_environment(world_with(play=round_batches)())


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


GLOBAL = np.random.default_rng(1)

BROKEN_DELAYS = [
    (lambda t, rng, batch: np.full(batch, 2.0), "check_delay_values", r"draw\(1\) with batch \(\) gave float64"),
    (lambda t, rng, batch: 3, "check_delay_values", "gave int"),
    (lambda t, rng, batch: np.full(batch, 5 - t), "check_delay_values", r"draw\(6\) with batch \(\) gave -1"),
    (lambda t, rng, batch: np.ones((*batch, 3), np.int64), "check_delay_values", r"with batch \(\) gave shape \(3,\)"),
    (lambda t, rng, batch: np.array(1), "check_delay_values", r"with batch \(6,\) gave shape \(\)"),
    (lambda t, rng, batch: GLOBAL.integers(0, 100, batch), "check_delay_rows", "a second draw of round"),
    (one_more_each_time([]), "check_delay_rows", "a second draw of round"),
    (shuffled_in_its_batch, "check_delay_rows", "alone differs from its row in a batch"),
]


@pytest.mark.parametrize(("function", "check", "message"), BROKEN_DELAYS)
def test_a_broken_delay_is_caught_by_its_check(function, check, message):
    demand_caught(partial(DelayOf, function), check, message, DELAY_CHECKS, check_delay, 0, 20, 6)


def test_an_object_that_cannot_be_drawn_from_is_a_broken_delay():
    with pytest.raises(AssertionError, match=r"object: raised AttributeError.*draw.*\[check_delay_values\]"):
        check_delay(object())  # type: ignore[arg-type]
