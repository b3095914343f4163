"""Every use of a policy from its functions of one learner: decisions, lessons, histories and whole simulations.

`drivers` makes them for the functions of a policy and the form of its state, compiled or as Python runs them. They are
written once. Learners are independent and draw from streams of their own, so results depend neither on what is computed
together nor on threads.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit, uint64

from spillover.core.compiled import compiled_part, entry, inner
from spillover.core.record import Fields, Row, row_opener
from spillover.core.turn import Lesson, Turn
from spillover.kernels.decorators import INNER
from spillover.kernels.outcomes import (
    ALL,
    FINE,
    delay_of,
    fault_of,
    fill_outcome,
    hide,
    is_fine,
    is_known,
    post_arms,
    post_part,
)

CHOICE: Final = np.uint64(3)  # the purposes of streams, see `rng.Purpose`
LEARNING: Final = np.uint64(4)
FIRST_CALL: Final = np.uint64(0)
OBSERVED: Final = 2  # position in `Scene.law`


class Details(NamedTuple):
    """What else is known of the rounds of some learners; see `Lesson`."""

    context: Any  # (learners, k)
    dose: Any  # (learners, n)


@inner
def without_details(details: Any, k: Any, x: Any, z: Any, y: Any, played: Any, memo: Any, arrival: Any) -> Lesson:
    """The k-th of some outcomes."""
    return Lesson(x, z, y, played, memo, arrival, None, None)


@inner
def with_details(details: Any, k: Any, x: Any, z: Any, y: Any, played: Any, memo: Any, arrival: Any) -> Lesson:
    return Lesson(x, z, y, played, memo, arrival, details.context[k], details.dose[k])


class Functions(NamedTuple):
    """What a policy does, as functions of one learner; None: nothing."""

    decide: Callable[..., None]
    learn_outcome: Callable[..., None]
    note_play: Callable[..., None] | None = None
    derive: Callable[..., None] | None = None
    remember: Callable[..., None] | None = None
    fill_index: Callable[..., None] | None = None
    prepare: Callable[..., Any] | None = None
    show: Callable[..., None] | None = None
    note_context: Callable[..., None] | None = None


ARGUMENTS = {  # of the functions above, by the names that policies have for them
    "decide": "self, s, turn, x",
    "learn_outcome": "self, s, lesson, turn",
    "note_play": "self, s, x",
    "derive": "self, s, turn",
    "remember": "self, s, turn, memo",
    "index": "self, s, turn, found",
    "prepare": "self, s",
    "show": "self, s, adjacency",
    "note_context": "self, s, context",
}


def check_arguments(functions: Functions) -> None:
    """Check what functions take, of which the compiler says little."""
    for (name, accepted), function in zip(ARGUMENTS.items(), functions, strict=True):
        if function is None:
            continue
        try:
            inspect.signature(function).bind(*accepted.split(", "))
        except TypeError:
            raise TypeError(f"{name} = {function.__qualname__}: must take ({accepted})") from None


class Drivers(NamedTuple):
    """The same for many learners."""

    decide: Any
    play: Any
    learn: Any
    solve: Any
    index: Any
    take_history: Any
    play_rounds: Any  # None for functions that Python runs


class Scene(NamedTuple):
    """What a stretch of rounds brings, for each world."""

    law: Any  # (worlds, 3): how rewards are drawn; whether anything is added to y; what is observed of outcomes
    concentration: Any  # (worlds,)
    columns: Any  # (worlds, n, n): columns[j]: what a reward of arm j adds to all outcomes
    rewards: Any  # (worlds, rounds or 1, n)
    noise: Any  # (worlds, rounds or 0, n)
    baseline: Any  # (worlds, rounds or 0, n)
    context: Any  # (worlds, rounds, k)
    ones: Any  # (worlds, n): the doses


class Rings(NamedTuple):
    """The rounds of a stretch and those in flight, for each learner; see `types.Flight` and `types.Lateness`."""

    x: Any
    z: Any
    y: Any
    first: Any
    last: Any
    following: Any
    memo: Any
    arrival: Any
    context: Any
    delays: Any
    slowest: Any
    silent: Any
    by_arm: Any
    fault: Any  # (learners,): the first thing wrong with an outcome


def nothing(*given):
    """Stand for a function that a policy leaves out."""


def as_it_is(function: Any) -> Any:
    return function


@lru_cache(maxsize=256)
def drivers(
    functions: Functions,
    allocates: bool,
    detailed: bool,
    own: Fields,
    state: Fields,
    scene: Fields | None = None,
    rings: Fields | None = None,
    in_parts: bool = False,
) -> Drivers:
    """Make the drivers of compiled functions for a state and hyperparameters of these forms.

    allocates: whether the functions make arrays. detailed: whether they are told `Details` of a round. scene, rings: of
    the rounds to be simulated, if there are any; in_parts: whether their arms may report at different times.
    """
    check_arguments(functions)
    made = [
        compiled_part(name, each or nothing, allocates=allocates or name == "prepare")
        for name, each in zip(ARGUMENTS, functions, strict=True)
    ]
    openers = row_opener(own, fixed=True), row_opener(state)
    apart = njit(**{**INNER, "forceinline": False}, _nrt=allocates)
    return written_once(made, *openers, entry, apart, detailed, scene, rings, in_parts)


@lru_cache(maxsize=256)
def plain_drivers(functions: Functions, detailed: bool) -> Drivers:
    """Make the drivers of functions that Python runs."""
    check_arguments(functions)
    return written_once([each or nothing for each in functions], Row, Row, as_it_is, as_it_is, detailed)


def written_once(
    functions: list[Any],
    open_own: Any,
    open_state: Any,
    made: Any,
    one_by_one: Any,
    detailed: bool,
    scene: Any = None,
    rings: Any = None,
    in_parts: bool = False,
) -> Drivers:
    decide, learn, play, solve, remember, index, prepare, show, note_context = functions
    lesson_of = with_details if detailed else without_details

    def decide_each(hyper, states, keys, call, rounds, purpose, lines, best, x, memo):
        """Fill in the decisions x, (learners, n), and the memos."""
        for k in range(x.shape[0]):
            p, s = open_own(hyper, k), open_state(states, k)
            x[k] = False
            turn = Turn(keys[k], call, rounds[k], purpose, lines, best, prepare(p, s))
            decide(p, s, turn, x[k])
            remember(p, s, turn, memo[k])

    def play_each(hyper, states, x):
        """Record decisions that were played."""
        for k in range(x.shape[0]):
            s = open_state(states, k)
            s.rounds += 1
            play(open_own(hyper, k), s, x[k])

    def learn_each(
        hyper, states, keys, call, rounds, purpose, lines, best, x, z, y, played, arrived, memo, arrival,
        details, solving
    ):  # fmt: skip
        """Learn the outcomes that have `arrived`, which is unset then; solving: and derive what decisions need."""
        for k in range(x.shape[0]):
            if arrived[k]:
                p, s = open_own(hyper, k), open_state(states, k)
                turn = Turn(keys[k], call, rounds[k], purpose, lines, best, prepare(p, s))
                learn(p, s, lesson_of(details, k, x[k], z[k], y[k], played[k], memo[k], arrival[k]), turn)
                if solving:
                    solve(p, s, turn)
                arrived[k] = False

    def solve_each(hyper, states, keys, call, rounds, purpose, lines, best):
        """Derive what decisions need."""
        for k in range(keys.shape[0]):
            p, s = open_own(hyper, k), open_state(states, k)
            solve(p, s, Turn(keys[k], call, rounds[k], purpose, lines, best, prepare(p, s)))

    def index_each(hyper, states, keys, call, rounds, purpose, lines, best, found):
        """Fill in the index of each arm."""
        for k in range(found.shape[0]):
            p, s = open_own(hyper, k), open_state(states, k)
            index(p, s, Turn(keys[k], call, rounds[k], purpose, lines, best, prepare(p, s)), found[k])

    def take_history(hyper, states, key, lines, best, x, z, y, arrived, memo, arrival, details):
        """Learn rounds of one learner whose outcomes came in their own rounds; x: (rounds, n)."""
        p, s = open_own(hyper, 0), open_state(states, 0)
        room = prepare(p, s)
        for r in range(x.shape[0]):
            lesson = lesson_of(details, r, x[r], z[r], y[r], s.rounds + 1, memo, arrival[r])
            note_context(p, s, lesson.context)
            s.rounds += 1
            play(p, s, x[r])
            if arrived[r]:
                turn = Turn(key, FIRST_CALL, uint64(s.rounds), LEARNING, lines, best, room)
                learn(p, s, lesson, turn)

    steps = [made(each) for each in (decide_each, play_each, learn_each, solve_each, index_each, take_history)]
    if scene is None:
        return Drivers._make([*steps, None])
    open_scene, open_rings = row_opener(scene), row_opener(rings)

    @one_by_one
    def play_learner(p, s, w, f, key, horizon, recorded, snapshots, lines, best, room):
        first, last, following, xs, zs, ys, memos = f.first, f.last, f.following, f.x, f.z, f.y, f.memo
        delays, slowest, silent, by_arm = f.delays, f.slowest, f.silent, f.by_arm
        arrivals, mask = f.arrival, first.shape[0] - 1
        parts = following.shape[1] if in_parts else 1
        law, concentration, columns = w.law, w.concentration, w.columns
        rewards, noise, baseline, context, contexts = w.rewards, w.noise, w.baseline, w.context, f.context
        low, high, observed, ones = s.reward_range[0], s.reward_range[1], w.law[OBSERVED], w.ones
        for r in range(delays.shape[0]):
            t = s.rounds + 1
            slot = t & mask
            x, z, y = xs[slot], zs[slot], ys[slot]
            for i in range(x.shape[0]):
                x[i] = False
                for line in range(memos.shape[1]):
                    memos[slot, line, i] = 0.0
            for column in range(context.shape[1]):
                contexts[slot, column] = context[r, column]
            note_context(p, s, contexts[slot])
            now = Turn(key, FIRST_CALL, uint64(t), CHOICE, lines, best, room)
            decide(p, s, now, x)
            remember(p, s, now, memos[slot])
            s.rounds = t
            play(p, s, x)
            fill_outcome(r, t, key, law, concentration, columns, rewards, noise, baseline, x, z, y)
            if in_parts and arrivals.shape[1] > 0:
                post_arms(
                    t, x, z, delays[r], slowest[r], silent[r], by_arm[r], horizon, first, last, following, arrivals
                )  # fmt: skip
            else:
                late = delay_of(x, z, delays[r], slowest[r], silent[r])
                post_part(t, 0, late, horizon, first, last, following, parts)
            hide(observed, z, y)
            part = first[slot]
            first[slot] = 0
            while part != 0:
                played = part // parts
                home = played & mask
                x, z, y = xs[home], zs[home], ys[home]
                if not (is_fine(x, z, y, low, high) if observed == ALL else is_known(y)):
                    return fault_of(x, z, y, s.reward_range, t - played, t)
                turn = Turn(key, FIRST_CALL, uint64(played), LEARNING, lines, best, room)
                learn(p, s, Lesson(x, z, y, played, memos[home], arrivals[home], contexts[home], ones), turn)
                solve(p, s, turn)
                part = following[home, part % parts]
            if recorded[r] >= 0:
                show(p, s, snapshots[recorded[r]])
        return FINE

    def play_rounds(hyper, states, scenes, worlds, flights, keys, horizon, recorded, snapshots, lines, best):
        """Play a stretch of rounds; a learner stops at an outcome that is not valid, and its `fault` says why."""
        for k in range(keys.shape[0]):
            p, s = open_own(hyper, k), open_state(states, k)
            w, f = open_scene(scenes, k % worlds), open_rings(flights, k)
            f.fault = play_learner(p, s, w, f, keys[k], horizon, recorded, snapshots[k], lines, best, prepare(p, s))

    return Drivers._make([*steps, made(play_rounds)])
