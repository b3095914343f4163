"""InstrumentalSEM: learns from decisions and overall outcomes, with baseline, context and hidden common causes."""

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from spillover import validate
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner
from spillover.core.compiled import called
from spillover.kernels.arrivals import NEVER, NOT_WAITED_FOR
from spillover.policies.changes import end_pull, fade_of, note_delay, note_pulls
from spillover.policies.graph_policy import scores
from spillover.policies.instrumental_effects import (
    any_testable,
    edge_interval,
    interval,
    is_testable,
    learn_plainly,
    merged,
    plain_effects,
    regress_plainly,
    structural_effects,
    test_graph,
    unevenness,
    use_plain_effects,
)
from spillover.policies.instrumental_equations import (
    PRIOR_DEVIATION,
    any_of,
    expect_equations,
    expect_shocks,
    learn_equations,
    learn_shocks,
    solve_equations,
    weigh_alone,
    weigh_graph,
)
from spillover.policies.instrumental_filter import (
    expect_effects,
    expected_effects,
    learn_effects,
    sizes,
    value_arms,
)
from spillover.policies.instrumental_state import InstrumentalState, empty_parts, observations
from spillover.rng import Rng
from spillover.types import Array, Batch, Explanation, Problem

GROWTH: Final = 0.005  # the graph is solved again when the rounds learned have grown by this share
MANY_ARMS: Final = 20  # with more arms, rarer: the cost grows with the fourth power
RAREST: Final = 1.0
OTHER_SCALE: Final = 0.2  # outcomes that vary less than this share of what was assumed so far
CONTEXT_ON = ("both", "baseline", "none")
WEIGHTS, MEAN, INDEX, SHIFT, OWN, FACTOR, STILL, CELLS = range(8)  # lines that are filled in for each arm


class Given(NamedTuple):
    """The outcome of a round as far as it is known, in units of the reward range."""

    x: Any  # (n,)
    dose: Any  # (n,)
    z: Any  # (n,): NaN where it is not known
    y: Any  # (n,): differences from the first known outcome of each arm; NaN where it is not known
    fresh: Any  # (n,): what is new; the rest was learned before
    complete: Any  # whether nothing that is missing is waited for
    context: Any  # (1 + k,): 1 and the context


class Room(NamedTuple):
    """Room to work in."""

    z: Any  # (n,) each
    y: Any
    shock: Any
    yhat: Any
    effects: Any
    count: Any
    spare: Any
    idle: Any
    signs: Any
    noise: Any
    of_shift: Any
    levels: Any
    still: Any
    factor: Any
    square: Any  # (n, n) each
    scatter: Any
    cells: Any
    ff: Any  # (d, d) each
    qf: Any
    qq: Any
    work_matrix: Any
    rows: Any
    inverse: Any
    precision: Any
    left: Any
    together: Any
    across: Any
    fy: Any  # (d,) each
    qy: Any
    product: Any
    left_product: Any
    prior: Any
    estimate: Any
    f: Any
    g: Any
    sites: Any
    shifts: Any
    exists: Any
    mean: Any
    shared: Any
    offset: Any
    gaps: Any
    observed: Any  # (m,) each
    work: Any
    centre: Any  # (n, m)
    stayed: Any  # (hypotheses,) each
    fresh: Any
    context: Any  # (1 + k,)
    gram: Any  # (s, s) each
    gram_inverse: Any
    plain: Any  # (n, s)
    regressors: Any  # (s,)
    places: Any  # (s,)
    picked: Any  # (d,)
    news: Any  # (n,)


@dataclass(frozen=True, kw_only=True)
class InstrumentalSEM(CorePolicy):
    """Learns from what was chosen and what came out; the arms' own rewards z are used where they are known.

    The outcome of an arm is a baseline, moved by context, plus spill-over from other arms, plus the arm's own effect if
    it is chosen, which may depend on context and switches now and then. Decisions are made before the errors of a
    round, so they serve as instruments: hidden common causes of several arms do not mislead the graph. Arms may report
    at different times, and outcomes may be missing. See docs/instrumental.md for the model.

    signed: whether edges may be negative. context_on: what the context may move, "both" (baselines and effects),
        "baseline", or "none".

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=2, budget=1, observes="overall", baseline=True)
    >>> learner = sp.Learner(InstrumentalSEM(signed=True), problem, seed=0)
    >>> for x, y in [([1, 0], [5, 3]), ([0, 1], [3, 6]), ([0, 0], [3, 3])] * 5:
    ...     learner.report(learner.play(x), y=y)
    >>> learner.choose()  # arm 1 adds 3, arm 0 adds 2
    array([False,  True])
    """

    signed: bool = False
    context_on: str = "both"

    compiled = True
    allocates = False
    unchanged_by_play = tuple(set(InstrumentalState._fields) - {"rounds", "last_pull", "in_flight"})
    order_free = False
    explains = True
    learns_graph = True
    needs_rewards = False
    uses_context = True
    fits_baseline = True
    accepts_missing = True
    accepts_doses = True

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool | np.bool_), "signed", self.signed, "True or False")
        validate.require(
            self.context_on in CONTEXT_ON, "context_on", self.context_on, f"one of {', '.join(CONTEXT_ON)}"
        )

    def sizes(self, context: int) -> tuple[int, int]:
        """The number of coefficients of the baseline, p, and of the effect, q."""
        moved = {"both": (1 + context, context), "baseline": (1 + context, 0), "none": (1, 0)}
        return moved[self.context_on]

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> InstrumentalState:
        validate.problem(problem)
        n, (p, q) = problem.n_arms, self.sizes(problem.context)
        reward_range = validate.spread("reward_range", problem.reward_range, (*batch, 2))
        low, high = reward_range[..., 0], reward_range[..., 1]
        prior = np.stack([0.5 * (low + high) / (high - low), np.full(batch, PRIOR_DEVIATION)], axis=-1)
        allowed = ~np.tri(n, dtype=np.bool_) if problem.acyclic else ~np.eye(n, dtype=np.bool_)
        belief, equations, statistics, reduced, shocks = empty_parts(n, p, q, batch)
        expect_effects(belief, prior[..., :1, None])
        first = empty_parts(n, p, q, ())[1]
        expect_equations(first, allowed, p, self.signed, 1.0)
        weigh_alone(first, np.empty((n, n)), np.empty(n), np.empty(n))
        for part, value in zip(equations, first, strict=True):
            part[...] = value
        return InstrumentalState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, n, np.int64),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=reward_range,
            last_pull=np.zeros((*batch, n), np.int64),
            in_flight=np.zeros((*batch, n)),
            longest_delay=np.zeros(batch),
            context=np.zeros((*batch, problem.context)),
            prior=prior,
            reference=np.broadcast_to([0.0, 0.0 if problem.baseline else 1.0], (*batch, n, 2)).copy(),
            allowed=np.broadcast_to(allowed, (*batch, n, n)).copy(),
            ordered=np.full(batch, bool(problem.acyclic)),
            solved=np.zeros(batch, np.int64),
            tested=np.zeros(batch, np.int64),
            belief=belief,
            equations=equations,
            statistics=statistics,
            reduced=reduced,
            shocks=shocks,
            rejected=np.zeros((*batch, n), np.bool_),
        )

    def prepare(self, s: Any) -> Any:
        n, m, (hypotheses, _), (_, size) = s.n_arms, s.belief.sums.shape[1], s.belief.mass.shape, s.reduced.products.shape
        d = s.equations.coefficients.shape[1]
        a, b, c = np.empty((14, n)), np.empty((3, n, n)), np.empty((10, d, d))
        e, f, g, h = np.empty((15, d)), np.empty((2, m)), np.empty((2, hypotheses)), np.empty((2, size, size))
        return Room(
            *(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]),
            *(b[0], b[1], b[2], c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]),
            *(e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11], e[12], e[13], e[14]),
            *(f[0], f[1], np.empty((n, m)), g[0], g[1], np.empty(1 + s.context.shape[0]), h[0], h[1]),
            *(np.empty((n, size)), np.empty(size), np.empty(size, np.int64), np.empty(d, np.int64), np.empty(n, np.bool_)),
        )

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        fill_lines(s, turn.room, turn.lines)
        for i in range(x.shape[0]):
            turn.lines[SHIFT, i] = turn.lines[WEIGHTS, i] * turn.lines[INDEX, i]
        choose_top(turn.lines[SHIFT], s.budget, turn, x)

    def note_play(self, s: Any, x: Any) -> None:
        note_pulls(s, x, s.belief.latest > 0)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        room, age, heard = turn.room, s.rounds - lesson.round, False
        given = in_units(s, room, lesson)
        remains = fade_of(s, s.belief.latest > 0) ** age  # before the belief is rewritten
        for i in range(s.n_arms):
            missing = math.isnan(given.y[i]) and math.isnan(given.z[i])
            news = given.fresh[i] and not missing
            heard |= news
            lost = missing and lesson.arrival.shape[0] > 0 and lesson.arrival[i] == NEVER
            if given.x[i] and (news or lost):
                end_pull(s, i, remains)
        expect_shocks(s, room, given)
        learn_effects(s, room, given, lesson.round)
        learn_plainly(s, room, given)
        learn_equations(s, room, given)
        learn_shocks(s, room, given)
        if heard:
            note_delay(s, age)
        for i in range(s.n_arms):  # after a change the regression starts again
            s.rejected[i] = s.rejected[i] and is_testable(s, i)
        learned, more = s.statistics.learned, 1.0 + min(GROWTH * max(s.n_arms / MANY_ARMS, 1.0) ** 3, RAREST)
        if learned > s.solved and learned >= more * s.solved:
            solve(s, room, self.signed)

    def derive(self, s: Any, turn: Turn) -> None:
        if s.solved > s.tested:
            test(s, turn.room)

    def settle(self, s: Any, turn: Turn) -> None:
        """Estimate the equations, and test them against a regression without a graph."""
        if s.statistics.learned > s.solved:
            solve(s, turn.room, self.signed)
        test(s, turn.room)

    def show(self, s: Any, adjacency: Any) -> None:
        for i in range(adjacency.shape[0]):
            for j in range(adjacency.shape[0]):
                adjacency[i, j] = s.equations.coefficients[i, j]

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """All that explanations need: see `explain`."""
        room, n = turn.room, s.n_arms
        fill_lines(s, room, found)
        regress_plainly(s, room)
        expected_effects(s, room.spare, found[OWN])
        for j in range(n):
            found[FACTOR, j], found[STILL, j] = room.factor[j], room.still[j]
            for i in range(n + 2):
                found[CELLS + 2 * n + i, j] = unevenness(s.reduced.levels[i, j])
            for i in range(n):
                found[CELLS + i, j], found[CELLS + n + i, j] = room.cells[i, j], room.scatter[i, j]

    def index_shape(self, state: InstrumentalState) -> tuple[int, ...]:
        n = state.in_flight.shape[-1]
        return CELLS + 3 * n + 2, n

    def adjacency(self, state: InstrumentalState) -> Array:
        n = state.in_flight.shape[-1]
        return np.array(state.equations.coefficients[..., :n])

    def signals(self, state: InstrumentalState) -> dict[str, Any]:
        return {
            "latest": state.belief.seen,
            "changes_seen": state.belief.detected[..., 0],
            "graph_rejected": state.rejected,
        }

    def explain(self, state: InstrumentalState, rng: Rng) -> Explanation:
        p, n = self.sizes(state.context.shape[-1])[0], state.in_flight.shape[-1]
        unit = np.asarray(state.reward_range[..., 1:] - state.reward_range[..., :1])
        found = self.indices(state, rng)
        weights, mean, index, shift, own, factor, still = np.moveaxis(found[..., :CELLS, :], -2, 0)
        cells, scatter, uneven = np.split(found[..., CELLS:, :], [n, 2 * n], axis=-2)
        effects = structural_effects(state, own, p, self.signed)
        regressors = np.concatenate([np.ones((*unit.shape[:-1], 1)), state.context], axis=-1)[..., :p, None]
        levels = state.equations.coefficients[..., n : n + p] @ regressors
        baseline = (state.equations.total_effects @ levels)[..., 0]
        if state.rejected.any():
            effects = merged(effects, plain_effects(cells, scatter, factor, uneven), state.rejected)
            baseline = np.where(state.rejected.any(axis=-1, keepdims=True), still, baseline)
        direct = np.diagonal(effects.cells, axis1=-2, axis2=-1)
        direct_variance = np.diagonal(effects.cell_variance, axis1=-2, axis2=-1)
        seen = state.belief.seen > 0
        return Explanation(
            mean=np.where(seen, unit * mean, np.nan),
            count=np.where(seen, observations(state.belief), 0.0),
            clock=np.asarray(state.rounds, float),
            index=unit * index,
            adjacency=self.adjacency(state),
            gain=np.ones_like(weights),
            weights=weights,
            score=scores(weights, unit * index),
            pending=np.array(state.in_flight),
            baseline=unit * (baseline + state.reference[..., 0]),
            context_effect=unit * shift,
            direct_interval=unit[..., None] * interval(direct, direct_variance),
            spill_interval=unit[..., None] * interval(effects.spill, effects.spill_variance, effects.spill_beyond),
            total_interval=unit[..., None] * interval(effects.total, effects.total_variance),
            effects=unit[..., None] * effects.cells,
            effects_interval=unit[..., None, None]
            * interval(effects.cells, effects.cell_variance, effects.cell_beyond),
            edge_probability=np.array(state.equations.probability),
            edge_interval=edge_interval(state.equations, state.allowed, self.signed),
        )


@inner
def in_units(s: Any, room: Any, lesson: Lesson) -> Given:
    """The outcome of a round in units of the reward range.

    Outcomes are differences from the first known one of each arm, so that a constant that is added to all outcomes
    changes nothing but the baseline.
    """
    unit, arrival, complete = s.reward_range[1] - s.reward_range[0], lesson.arrival, True
    for i in range(s.n_arms):
        y, z, room.news[i] = lesson.y[i] / unit, lesson.z[i] / unit, True
        if arrival.shape[0] > 0:
            room.news[i] = arrival[i] == s.rounds or arrival[i] == NOT_WAITED_FOR
            if arrival[i] > s.rounds:
                y, z = math.nan, math.nan
                complete &= arrival[i] == NEVER or arrival[i] == NOT_WAITED_FOR
        if s.reference[i, 1] == 0.0 and not math.isnan(y):
            s.reference[i, 0], s.reference[i, 1] = y, 1.0
        room.z[i], room.y[i] = z, y - s.reference[i, 0]
    room.context[0] = 1.0
    for c in range(lesson.context.shape[0]):
        room.context[1 + c] = lesson.context[c]
    return Given(lesson.x, lesson.dose, room.z, room.y, room.news, complete, room.context)


@called
def solve(s: Any, room: Any, signed: Any) -> None:
    """Estimate the equations again."""
    unit = s.equations.pooled[1]
    solve_equations(s, room, signed)
    if s.equations.pooled[1] < OTHER_SCALE * unit:
        start_again(s, room, signed)
    s.solved = s.statistics.learned


@inner
def start_again(s: Any, room: Any, signed: Any) -> None:
    """Learn from now on only, as outcomes turn out to be on quite another scale than the reward range.

    This happens after a few rounds, in which effects were expected to be far larger than they are.
    """
    unit, known, shocks = s.equations.pooled[1], s.statistics, s.shocks
    expect_effects(s.belief, s.prior[0] * unit)
    expect_equations(s.equations, s.allowed, sizes(s)[0], signed, unit)
    weigh_graph(s.equations, room.square, room.spare, room.levels)
    for part in (known.ff, known.qf, known.qq):
        part[...] = 0.0
    for part in (known.fy, known.qy):
        part[...] = 0.0
    for part in (known.yy, known.rounds, known.squares, known.freedom, shocks.shared, shocks.shared_chosen):
        part[...] = 0.0
    for part in (shocks.free_products, shocks.chosen_products):
        part[...] = 0.0


@called
def test(s: Any, room: Any) -> None:
    """Test the equations against a regression without a graph."""
    if any_testable(s):
        expected_effects(s, room.idle, room.signs)
        test_graph(s, room, room.signs)
    s.tested = s.solved


@inner
def fill_lines(s: Any, room: Any, lines: Any) -> None:
    """What arms are ranked by, weights times index; where the graph is rejected, the regression on decisions decides."""
    for i in range(s.n_arms):
        lines[WEIGHTS, i] = s.equations.weights[i]
    value_arms(s, room, lines[MEAN], lines[INDEX], lines[SHIFT])
    if any_of(s.rejected):
        use_plain_effects(s, room, lines[WEIGHTS], lines[MEAN], lines[INDEX])
