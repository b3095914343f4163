"""The rounds of a history that can be evaluated, worlds that they leave possible, and what decisions bring in them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy
from spillover.contracts.world import observed
from spillover.history import History, read_history
from spillover.history.record import standard_context
from spillover.history.replay import problem_of
from spillover.rng import Purpose, Rng
from spillover.simulation import replay, simulate
from spillover.types import Array, Batch, BoolArray, Course, IntArray, Outcome, Problem, Scored

FEWEST_ROUNDS = 10  # with fewer there is nothing to evaluate
MOST_ARMS = 100  # the model of the log has all pairs of arms
MOST_ROUNDS = 20_000
BLOCKS = 60  # stretches of rounds in which means are taken to stay the same: the totals hardly depend on it


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Decisions and outcomes, in the sign that is maximised; rows are rounds in order."""

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    amounts: Array  # (rounds, arms): x times the dose
    z: Array | None  # (rounds, arms): own rewards, 0 where not chosen; None: not observed
    y: Array  # (rounds, outcomes): one outcome for each arm, or one for all
    fixed: Array  # (rounds, k): what moves outcomes besides decisions: 1 if there may be a baseline, and context
    context: Array | None  # (rounds, columns), standardised
    problem: Problem
    possible: tuple[float, float]  # what a round can bring: no less and no more, whatever is decided
    spills: bool  # False: the table has own rewards only, and they are the outcomes
    left_out: int  # rounds whose outcomes are not all known
    places: IntArray  # (rounds,): where the rounds are in the history

    @property
    def payoff(self) -> Array:
        """The payoff of each round."""
        return np.asarray(self.y.sum(axis=1))

    @property
    def possible_gain(self) -> tuple[float, float]:
        """The interval of what other decisions can have brought beyond these, in all rounds; at least 0 to 0."""
        low, high = (len(self.x) * end - float(self.payoff.sum()) for end in self.possible)
        return min(low, 0.0), max(high, 0.0)

    @cached_property
    def block(self) -> IntArray:
        """The stretch that each round belongs to."""
        count = len(self.x)
        blocks = min(BLOCKS, count)
        return np.arange(count) * blocks // count

    @property
    def starts(self) -> IntArray:
        """The first round of each stretch."""
        return np.searchsorted(self.block, np.arange(self.block[-1] + 1))


def log_of(
    history: History, budget: int, reward_range: Any = None, overall_range: Any = None, *, constant: bool = False
) -> Log:
    """The complete rounds of a history. constant: whether their outcomes always add up to the same number."""
    count, n = history.x.shape
    validate.require(n <= MOST_ARMS, "number of arms", n, f"at most {MOST_ARMS} to be evaluated")
    outcomes = history.y[:, :1] if history.observes == "payoff" else history.y
    known = history.arrived & np.isfinite(outcomes).all(axis=1)
    if history.observes == "both":
        known = known & (np.isfinite(history.z) | ~history.x).all(axis=1)
    here = np.flatnonzero(known)
    accepted = f"from {FEWEST_ROUNDS} to {MOST_ROUNDS:,} rounds"
    validate.require(
        FEWEST_ROUNDS <= len(here) <= MOST_ROUNDS, "rounds with all of their outcomes", len(here), accepted
    )
    standard = standard_context(history)
    context = None if standard is None else standard.values[here]
    one = np.ones((len(here), 1 if history.has_baseline else 0))
    x, problem = history.x[here], problem_of(history, budget, reward_range, overall_range, standard)
    return Log(
        arms=history.arms,
        rounds=tuple(history.rounds[t] for t in here),
        x=x,
        amounts=x.astype(float) if history.dose is None else np.where(x, history.dose[here], 0.0),
        z=np.where(x, history.z[here], 0.0) if history.observes == "both" else None,
        y=outcomes[here],
        fixed=one if context is None else np.column_stack([one, context]),
        context=context,
        problem=problem,
        possible=possible_payoff(outcomes[here], problem.overall_range, constant=constant),
        spills=history.has_overall,
        left_out=count - len(here),
        places=here,
    )


def possible_payoff(y: Array, declared: Any, *, constant: bool) -> tuple[float, float]:
    """The least and the most that a round can bring; infinite where nothing is known of it.

    Outcomes are in the range that was declared. Where all have the same sign (sales, costs), none has the other. Where
    they always add up to the same number (shares), no decision changes it.
    """
    if constant:
        same = float(y.sum(axis=1).mean())
        return same, same
    low, high = (-np.inf, np.inf) if declared is None else (float(end) for end in declared)
    low, high = max(low, 0.0 if (y >= 0).all() else low), min(high, 0.0 if (y <= 0).all() else high)
    return y.shape[1] * low, y.shape[1] * high


NORMAL = 1.959963984540054  # the 97.5% quantile of the standard normal distribution
ENOUGH = 30.0  # effective rounds, below which the intervals are not to be trusted


class Estimate(NamedTuple):
    """An average payoff of a round with its 95% interval.

    >>> Estimate(value=2.0, low=1.0, high=3.0).times(10)
    Estimate(value=20.0, low=10.0, high=30.0)
    """

    value: float
    low: float
    high: float

    def times(self, count: float) -> "Estimate":
        """The same for another number of rounds; a negative one turns the interval round."""
        ends = sorted((self.low * count, self.high * count))
        return Estimate(self.value * count, ends[0], ends[1])


class Weighed(NamedTuple):
    """A log reweighed for another policy.

    >>> weighed([1.0, 0.0, 2.0, 1.0], [0.5, 0.5, 0.25, 0.25], [1, 0, 1, 0]).enough
    False
    """

    ips: Estimate  # inverse propensity scores: unbiased
    snips: Estimate  # the same with weights that add up to the number of rounds: less noise, a little bias
    dr: Estimate | None  # doubly robust: the model, corrected by the rounds; None without a model
    effective: float  # the number of rounds of equal weight that would be as informative
    matching: int  # rounds whose set the policy may have chosen

    @property
    def enough(self) -> bool:
        return self.effective >= ENOUGH


def weighed(payoff: Any, propensity: Any, target: Any, model: Any = None, predicted: Any = None) -> Weighed:
    """Estimate the average payoff of a policy.

    payoff: (rounds,), what each round brought. propensity: the probability with which its set was chosen.
    target: the probability with which the policy would have chosen this set; 1 or 0 if it does not draw.
    model: what a model expects of the policy's decision in each round; predicted: of the decision that was made.

    >>> found = weighed([1.0, 0.0, 2.0, 1.0], [0.5, 0.5, 0.25, 0.25], [1, 0, 1, 0])
    >>> found.ips.value, round(found.snips.value, 3), round(found.effective, 2), found.matching
    (2.5, 1.667, 1.8, 2)
    """
    reward = finite("payoff", payoff)
    accepted = f"{len(reward)} probabilities above 0 and at most 1, of the sets that were chosen"
    logged = finite("propensity", propensity, accepted)
    validate.require(logged.shape == reward.shape, "shape of propensity", logged.shape, f"{reward.shape}, as payoff")
    validate.require(bool(((logged > 0) & (logged <= 1)).all()), "propensity", propensity, accepted)
    wanted = finite("target", target)
    validate.require(wanted.shape == reward.shape, "shape of target", wanted.shape, f"{reward.shape}, as payoff")
    validate.require(bool(((wanted >= 0) & (wanted <= 1)).all()), "target", target, "probabilities from 0 to 1")
    weight = wanted / logged
    return Weighed(
        ips=average(weight * reward),
        snips=self_normalised(weight, reward),
        dr=None if model is None else doubly_robust(weight, reward, finite("model", model), predicted),
        effective=effective_rounds(weight),
        matching=int((weight > 0).sum()),
    )


def finite(name: str, given: Any, accepted: str = "finite numbers, one for each round") -> Array:
    values = validate.numbers(name, given, accepted)
    validate.require(values.ndim == 1 and bool(np.isfinite(values).all()), name, given, accepted)
    return values


def average(terms: Array) -> Estimate:
    """The average of independent terms."""
    value = float(terms.mean())
    error = NORMAL * float(terms.std(ddof=1)) / np.sqrt(len(terms)) if len(terms) > 1 else np.inf
    return Estimate(value, value - error, value + error)


def self_normalised(weight: Array, reward: Array) -> Estimate:
    """The weighted average, with the error of a ratio (delta method)."""
    total = float(weight.sum())
    if total == 0.0:
        return Estimate(np.nan, np.nan, np.nan)
    value = float((weight * reward).sum()) / total
    error = NORMAL * float(np.sqrt((weight**2 * (reward - value) ** 2).sum())) / total
    return Estimate(value, value - error, value + error)


def doubly_robust(weight: Array, reward: Array, model: Array, predicted: Any) -> Estimate:
    """The doubly robust estimate: the model's, plus the weighted average of its errors in the log."""
    return average(model + weight * (reward - finite("predicted", predicted)))


def effective_rounds(weight: Array) -> float:
    """Kish's effective sample size."""
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares else 0.0


def propensities_of(table: Any, history: History, column: str, **reading: Any) -> Array:
    """The probability of the set of each round of a history, from a column of its table."""
    given = isinstance(table, str) and table == "-"
    validate.require(not given, "propensity", column, "left out for standard input, which is read only once")
    reading = {**reading, "context": [column], "next_context": None}
    try:
        found = read_history(table, **reading)
    except ValueError as error:
        raise ValueError(f"propensity = {column!r}: {str(error).replace('context', 'propensity')}") from None
    accepted = "a column with one number for each round: the probability of the set that was chosen"
    one = found.context_names == (column,) and found.rounds == history.rounds
    validate.require(one, "propensity", column, accepted)
    values = np.asarray(found.context, float)[:, 0]
    wrong = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(wrong):
        name = f"propensity = {values[wrong[0]]:g} in round {history.rounds[wrong[0]]}"
        raise ValueError(f"{name}: must be a probability above 0 and at most 1: the set was chosen, so it was possible")
    return values


def decisions_on(policy: AnyPolicy, log: Log, delay: int, seed: int) -> BoolArray:
    """The decisions of a policy that learns from the log as it goes, (rounds, arms)."""
    y = log.y
    if y.shape[1] < len(log.arms):
        y = np.concatenate([y, np.zeros((len(y), len(log.arms) - y.shape[1]))], axis=1)
    found = replay(policy, log.problem, log.x, log.z, y, context=log.context, delay=delay, seed=seed)
    return np.array([one.chosen for one, _ in zip(found, range(len(log.x)), strict=False)], np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class Worlds:
    """Draws from the posterior. The outcomes of round t are effects (amounts * own) + outcomes without decisions."""

    log: Log
    effects: Array  # (draws, outcomes, arms): what one unit of an arm's own reward adds to each outcome
    own: Array  # (draws, stretches, arms): own rewards, on average
    fixed: Array  # (draws, outcomes, k): coefficients of `Log.fixed`
    reward_residuals: tuple[Array, ...]  # of each arm, what its own rewards differ by from their averages
    residuals: Array  # (rounds, outcomes): the same of outcomes
    binary: bool  # whether own rewards are 0 or 1

    @cached_property
    def worth(self) -> Array:
        """The total effect of choosing an arm, (draws, stretches, arms)."""
        return np.asarray(self.effects.sum(axis=1)[:, None, :] * self.own)

    @cached_property
    def without(self) -> Array:
        """The expected payoff of each round if nothing is chosen, (draws, rounds)."""
        return np.asarray(self.fixed.sum(axis=1) @ self.log.fixed.T)

    def expected(self, amounts: Any) -> Array:
        """The expected payoff of decisions, (draws, rounds); amounts: (rounds, arms), or (draws, rounds, arms)."""
        return np.asarray(np.vecdot(self.worth[:, self.log.block, :], amounts))

    def __len__(self) -> int:
        return len(self.effects)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRounds:
    """An environment for `simulate`: replication k is draw k of the worlds, from the first again after the last."""

    worlds: Worlds
    decisions: BoolArray  # (replications, rounds, arms): of the policy that was played, written when they are measured

    @classmethod
    def of(cls, worlds: Worlds, replications: int) -> "LoggedRounds":
        return cls(worlds=worlds, decisions=np.zeros((replications, *worlds.log.x.shape), np.bool_))

    def draw(self, rng: Rng, batch: Batch = ()) -> "LoggedWorld":
        log, rows = self.worlds.log, np.arange(int(np.prod(batch, dtype=int))).reshape(batch) % len(self.worlds)
        return LoggedWorld(rounds=self, rows=rows, problem=log.problem, horizon=len(log.x), arms=log.arms)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedWorld:
    """The logged rounds, played again by another policy; noise is drawn anew from the residuals of the log."""

    rounds: LoggedRounds
    rows: IntArray  # (replications,): the draw of each
    problem: Problem
    horizon: int
    arms: tuple[str, ...]
    changes: tuple[int, ...] = ()
    graph_changes: tuple[int, ...] = ()

    @property
    def worlds(self) -> Worlds:
        return self.rounds.worlds

    def context(self, t: int) -> Array | None:
        """The context of round t, the same in all draws."""
        known = self.worlds.log.context
        return None if known is None else np.broadcast_to(known[t - 1], (*self.rows.shape, known.shape[1]))

    def adjacency(self, t: int) -> Array:
        """Not known: the posterior is about total effects. The error of graphs is not measured here."""
        n = len(self.arms)
        return np.zeros((*self.rows.shape, n, n))

    @cached_property
    def total(self) -> Array:
        """(replications, n, n): what a unit of own reward adds to each outcome; one outcome is in the first row."""
        effects = self.worlds.effects[self.rows]
        rest = effects.shape[-1] - effects.shape[-2]
        return np.concatenate([effects, np.zeros((*effects.shape[:-2], rest, effects.shape[-1]))], axis=-2)

    def weights(self, t: int) -> Array:
        return np.asarray(self.total.sum(axis=-2))

    def scores(self, rounds: IntArray) -> Array:
        """The expected payoff of each arm, (replications, rounds, arms)."""
        return np.asarray(self.worlds.worth[self.rows][..., self.worlds.log.block[rounds - 1], :])

    def best_of(self, scores: Array) -> BoolArray:
        """The best sets by scores: the best arms whose effect is positive."""
        order = np.argsort(-scores, axis=-1, kind="stable")
        best = np.zeros(scores.shape, np.bool_)
        np.put_along_axis(best, order[..., : self.problem.budget], True, axis=-1)
        return best & (scores > 0)

    def best(self, t: int) -> BoolArray:
        return self.best_of(self.scores(np.array([t]))[..., 0, :])

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        return self.best_of(self.scores(rounds))

    def expected(self, t: int, x: BoolArray) -> Array:
        return np.asarray(np.vecdot(self.scores(np.array([t]))[..., 0, :], x))

    def matches(self, t: int, x: BoolArray) -> IntArray:
        return np.asarray((self.best(t) & x).sum(axis=-1))

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        """Measure the decisions of some rounds, and keep them."""
        self.rounds.decisions[:, first - 1 : first - 1 + x.shape[-2]] = x
        scores = self.scores(np.arange(first, first + x.shape[-2]))
        best = self.best_of(scores)
        regret = np.vecdot(scores, best) - np.vecdot(scores, x)
        return Scored(np.asarray(regret), np.asarray((best & x).sum(axis=-1)), np.asarray(best.sum(axis=-1)))

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        """Draw what rounds first to last bring whatever is chosen."""
        if self.problem.observes != "both":
            return None
        rounds = np.arange(first, last + 1)
        return self.brought(rounds, rng.over(Purpose.WORLD, rounds))

    def brought(self, rounds: IntArray, rng: Rng) -> Course:
        """Rewards of all arms, noise, and outcomes without decisions, (replications, rounds, arms)."""
        log, n = self.worlds.log, len(self.arms)
        drawn = rng.uniform(n + 1)
        own = self.worlds.own[self.rows][..., log.block[rounds - 1], :]
        donors = np.minimum((drawn[..., n] * self.horizon).astype(np.int64), self.horizon - 1)
        noise = self.outcomes(self.worlds.residuals[donors])
        still = np.matmul(self.worlds.fixed[self.rows], log.fixed[rounds - 1].T)
        return Course(self.total, self.rewards(own, drawn[..., :n]), noise, self.outcomes(np.swapaxes(still, -1, -2)))

    def rewards(self, own: Array, drawn: Array) -> Array:
        """Own rewards: their averages, and a residual of the same arm if there are any; within the declared range."""
        if self.problem.observes != "both":
            return own
        if self.worlds.binary:
            return np.asarray(drawn < own, float)
        values = own.copy()
        for j, residuals in enumerate(self.worlds.reward_residuals):
            if len(residuals):
                values[..., j] += residuals[(drawn[..., j] * len(residuals)).astype(np.int64) % len(residuals)]
        low, high = self.problem.reward_range
        return np.clip(values, low, high)

    def outcomes(self, values: Array) -> Array:
        """Values for each outcome as n columns; one outcome for all arms is in the first."""
        rest = len(self.arms) - values.shape[-1]
        return values if not rest else np.concatenate([values, np.zeros((*values.shape[:-1], rest))], axis=-1)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        own = rng.over(Purpose.WORLD, np.array([t]))
        total, rewards, noise, still = self.brought(np.array([t]), own)[:4]
        z = np.where(x, rewards[..., 0, :], 0.0)
        y = (total @ z[..., None])[..., 0] + noise[..., 0, :] + still[..., 0, :]
        return observed(Outcome(z, y), "both" if self.problem.observes == "both" else "overall")


TAILS = (0.025, 0.975)
# Noise differs between rounds and means move otherwise than assumed: on the worlds that the model was developed on,
# intervals of the draws alone contained the truth in 85% to 100% of the cases.
WIDER = 1.25
AGAIN = 3  # every third world is played twice
LEAST_KEPT = 0.2  # of the variance of the draws, whatever is luck


class Counterfactual(NamedTuple):
    """Decisions in each draw, and what they bring in expectation."""

    payoff: Array  # (draws,): of all rounds, with the outcomes that there are without any decision
    course: Array  # (draws, rounds): the payoff up to each round
    shares: Array  # (arms,): the share of each arm in all choices


def of_decisions(worlds: Worlds, amounts: Array | BoolArray) -> Counterfactual:
    """Of given decisions: (rounds, arms), or (draws, rounds, arms) if they differ between worlds."""
    expected = np.clip(worlds.expected(amounts) + worlds.without, *worlds.log.possible)
    course = np.cumsum(expected, axis=-1)
    chosen = (amounts != 0).reshape(-1, amounts.shape[-1]).sum(axis=0)
    return Counterfactual(course[:, -1], course, chosen / max(int(chosen.sum()), 1))


def of_policy(worlds: Worlds, policy: AnyPolicy, delay: Any, seed: int = 0) -> Counterfactual:
    """Of a policy that starts in the first round, knows nothing, and learns from what it brings about itself.

    Its payoff in a world is an expectation. It plays once in each world, so draws also differ by its own luck. In a
    third of the worlds it plays twice: how far apart the two are tells by how much, and the draws are moved together.
    """
    draws, again = len(worlds), max(len(worlds) // AGAIN, 2)
    rounds = LoggedRounds.of(worlds, draws + again)
    simulate(policy, rounds, delay, replications=draws + again, seed=seed, record=[len(worlds.log.x)], threads=1)
    found = of_decisions(worlds, rounds.decisions[:draws])
    twice = np.concatenate([rounds.decisions[draws:], rounds.decisions[again:draws]])  # the others count once
    luck = float(((found.payoff - of_decisions(worlds, twice).payoff)[:again] ** 2).mean()) / 2
    spread = float(found.payoff.var(ddof=1))
    kept = max(1.0 - luck / spread, LEAST_KEPT) ** 0.5 if spread > 0 else 1.0
    payoff, course = (values.mean(axis=0) + kept * (values - values.mean(axis=0)) for values in found[:2])
    return found._replace(payoff=payoff, course=course)


def of_best_sets(worlds: Worlds) -> Counterfactual:
    """Of the best set of each round, in each world: nobody could have known them, so no policy does better."""
    world = LoggedRounds.of(worlds, 0).draw(Rng(0), (len(worlds),))
    return of_decisions(worlds, world.best_of(worlds.worth)[:, worlds.log.block, :])


def effect_of_each_arm(worlds: Worlds) -> Array:
    """The expected effect of each arm, (arms,), if it had been chosen in all rounds: to find the best fixed set."""
    return np.asarray(worlds.worth[:, worlds.log.block, :].mean(axis=(0, 1)))


def interval_of(draws: Array, possible: tuple[float, float] = (-np.inf, np.inf)) -> tuple[float, float]:
    """The 95% interval of draws, wider than that of the draws alone by a factor, but within what is possible."""
    mean, ends = draws.mean(), np.quantile(draws, TAILS, method="weibull")
    low, high = np.clip(mean + WIDER * (ends - mean), *possible)
    return float(low), float(high)
