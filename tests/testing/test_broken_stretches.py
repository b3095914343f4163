"""Each compiled form that differs from what it stands for is caught by the check that is meant for it."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

import spillover as sp
from spillover import kernels
from spillover.contracts import Delay
from spillover.environments import SEMWorld
from spillover.policies.graph_policy import GraphBatches
from spillover.testing import check_delay, check_environment
from spillover.testing.invariance import check_course, check_stretches
from spillover.testing.trial import Trial
from tests.testing.sound import SMALL


class StopsTheClock(GraphBatches):
    """One leaf of the state is not kept up to date."""

    def play_stretch(self, state, stretch, rng):
        before = state.clock.copy()
        played = super().play_stretch(state, stretch, rng)
        return None if played is None else played._replace(clock=before)


class OtherDiscount(GraphBatches):
    def play_stretch(self, state, stretch, rng):
        return sp.NDCSEM(discount=0.5).batches.play_stretch(state, stretch, rng)


class LosesGraphs(GraphBatches):
    """The graphs to be measured are not written."""

    def play_stretch(self, state, stretch, rng):
        kept = stretch._replace(snapshots=np.zeros_like(stretch.snapshots))
        stretch.snapshots[...] = 0.0
        return super().play_stretch(state, kept, rng)


class HearsTooMuch(GraphBatches):
    """A round is learned as a whole with the first of its arms."""

    def play_stretch(self, state, stretch, rng):
        late = stretch.lateness
        if late.by_arm.shape[-1] > 0:
            late = late._replace(by_arm=np.broadcast_to(late.by_arm.min(axis=-1, keepdims=True), late.by_arm.shape))
        return super().play_stretch(state, stretch._replace(lateness=late), rng)


def driven(base, batches):
    """A policy that drivers use in another way."""
    return type("Driven", (base,), {"batches": property(batches)})()


@pytest.mark.parametrize("batches", [StopsTheClock, OtherDiscount, LosesGraphs])
def test_stretches_that_differ_from_the_four_functions_are_caught(batches):
    with pytest.raises(AssertionError, match=r"stretches of rounds with batch .* differ from the four functions"):
        check_stretches(driven(sp.NDCSEM, batches), Trial(SMALL, 0))


def test_stretches_that_differ_only_where_arms_report_at_different_times_are_caught():
    with pytest.raises(AssertionError, match=r"and ArmDelays.* differ from the four functions"):
        check_stretches(driven(sp.SwitchingSEM, HearsTooMuch), Trial(SMALL, 0))


def test_sound_stretches_are_accepted():
    check_stretches(sp.NDCSEM(), Trial(SMALL, 0))


def environment_with(**methods):
    kind = type("OtherWorld", (SEMWorld,), methods)

    @dataclass(frozen=True, kw_only=True)
    class Other(sp.SyntheticSEM):
        def draw(self, rng, batch=()):
            world = super().draw(rng, batch)
            return kind(**{f.name: getattr(world, f.name) for f in fields(world)})

    return Other(n_arms=5, budget=2, horizon=20, changes=(12,))


def plain_play(self, t, x, rng):
    """Without the rewards of the class."""
    z, y = kernels.play(self.total[..., 0, :, :], SEMWorld.rewards(self, t, rng), x)
    return sp.Outcome(z, y)


def test_a_course_that_differs_from_play_is_caught():
    def rewards(self, t, rng):
        return np.where(np.asarray(t)[..., None] % 7 == 3, 0.5, SEMWorld.rewards(self, t, rng))

    check_course(environment_with(rewards=rewards), 0, 0)  # drawn round by round

    def means_for_rewards(self, first, last, rng):
        course = SEMWorld.course(self, first, last, rng)
        return None if course is None else course._replace(law=kernels.DRAWN)

    wrong = environment_with(course=means_for_rewards)
    with pytest.raises(AssertionError, match=r"course\(1, 20\) differs from play in round 1"):
        check_environment(wrong, draws=50)
    with pytest.raises(AssertionError, match=r"course\(1, 20\) differs from play in round 3"):
        check_course(environment_with(rewards=rewards, course=SEMWorld.course_at_once, play=plain_play), 0, 0)


def one_match_more(self, first, x):
    scored = SEMWorld.score_rounds(self, first, x)
    return scored._replace(matches=scored.matches + 1)


def test_measures_that_differ_from_best_and_matches_are_caught():
    with pytest.raises(AssertionError, match="score_rounds differs from expected, best and matches"):
        check_environment(environment_with(score_rounds=one_match_more), draws=50)


@dataclass(frozen=True)
class Growing(Delay):
    """Depends on the round itself."""

    def draw(self, t, rng, batch=()):
        return np.full(batch, t // 3)


@dataclass(frozen=True)
class GrowingInSecret(Growing):
    stationary = True


def test_delays_drawn_at_once_that_differ_are_caught():
    check_delay(Growing())
    with pytest.raises(AssertionError, match=r"draw_rounds with batch .* differs from draw"):
        check_delay(GrowingInSecret())
