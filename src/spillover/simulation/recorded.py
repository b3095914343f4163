"""A recorded log, learned by a policy round by round."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy, Delay, Policy, require_explains, suited
from spillover.delays import as_delay
from spillover.mailbox import FeedbackQueue
from spillover.rng import Purpose, Rng
from spillover.stretches import takes_parts
from spillover.tabular import in_columns, shared_names
from spillover.types import BoolArray, Explanation, Feedback, Outcome, Problem


def replay(
    policy: AnyPolicy,
    problem: Problem,
    x: Any,
    z: Any,
    y: Any,
    *,
    context: Any = None,
    delay: Any = 0,
    seed: int = 0,
) -> Iterator[Explanation]:
    """Let a policy learn a recorded log; yields its explanations of rounds 1 to T + 1.

    x, z, y: the recorded decisions and outcomes, `(T, n)`. They are checked before the first round. z is None if the
    problem does not observe it. Outcomes may be NaN if the policy accepts missing ones. Tables (pandas, Polars, Arrow)
    have a column for each arm: those of z and y are put into the order of x.
    context: `(T + 1, k)`, the last row that of the coming round; with `(T, k)` the explanations end with round T.

    >>> import spillover as sp
    >>> x = z = y = np.array([[1.0, 0.0], [0.0, 1.0]])  # two rounds: each arm was played once, and brought 1
    >>> *past, coming = replay(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), x, z, y)
    >>> len(past), coming.mean
    (2, array([1., 1.]))
    """
    validate.problem(problem)
    player = suited(policy, problem)
    require_explains(player, "to be replayed")
    late = as_delay(delay)
    arms = shared_names(x, z, y)
    x, z, y = (in_columns(name, given, arms) for name, given in (("x", x), ("z", z), ("y", y)))
    context = in_columns("context", context, None)
    decisions = np.asarray(x)
    shape = (len(decisions) if decisions.ndim else 0, problem.n_arms)
    log = validate.decision("x", decisions, shape)
    late.check_reach(len(log), 1)
    rewards = validate.observed_rewards(z, problem.observes, shape)
    given = Feedback(log, rewards, y, np.zeros(len(log), np.int64), np.ones(len(log), np.bool_))
    partial = problem.observes != "both" or player.traits.accepts_missing
    check = validate.partial_feedback if partial else validate.feedback
    checked = check(given, shape, np.asarray(problem.reward_range, float), np.arange(1, len(log) + 1))
    if not player.traits.accepts_missing and np.isnan(checked.y).any():
        row = int(np.isnan(checked.y).any(axis=-1).argmax())
        accepted = "numbers: the policy does not accept missing outcomes"
        validate.require(False, f"y of round {row + 1}", checked.y[row], accepted)
    table = validate.context(context, problem.context, (len(log), len(log) + 1))
    return replay_checked(player, problem, log, Outcome(checked.z, checked.y, table), late, Rng(seed))


def replay_checked(
    policy: Policy, problem: Problem, log: BoolArray, outcome: Outcome, delay: Delay, rng: Rng
) -> Iterator[Explanation]:
    queue = FeedbackQueue(delay, len(log), rng, (), takes_parts(policy, problem))
    state = policy.init(problem, rng.at(Purpose.START))
    z, y, table = outcome
    last = len(log) + 1 if table is None else len(table)
    for t in range(1, last + 1):
        context = None if table is None else table[t - 1]
        if context is not None:
            state = policy.observe(state, context)
        decision = policy.explain_choice(state, rng.at(Purpose.CHOICE, t))
        validate.own_decision(policy, decision.chosen, (problem.n_arms,), problem.budget)
        yield decision
        if t > len(log):
            return
        choice = policy.select(state, rng.at(Purpose.CHOICE, t))._replace(x=log[t - 1])
        state = policy.played(state, choice.x)
        for feedback, played_at in queue.exchange(t, choice, Outcome(z[t - 1], y[t - 1], context)):
            state = policy.update(state, feedback, rng.at(Purpose.LEARNING, played_at))
