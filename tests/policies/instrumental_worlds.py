"""Histories of random decisions in known worlds, for the tests of InstrumentalSEM."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import spillover as sp
from spillover.core.batches import learns_histories


@dataclass(frozen=True)
class History:
    """y = A y + baseline + context + x dose (own + slopes context) + error; the last context is for the decision."""

    adjacency: Any
    x: Any
    dose: Any
    z: Any
    y: Any
    own: Any  # (rounds + 1, n): effects without context
    slopes: Any  # (n, k)
    levels: Any  # (n,)
    pulls: Any  # (n, k): what context does to the baseline
    context: Any  # (rounds + 1, k)
    errors: Any  # (rounds, n)

    @property
    def total(self):
        return np.linalg.inv(np.eye(len(self.adjacency)) - self.adjacency)

    def effects(self):
        return self.total * (self.own[-1] + self.slopes @ self.context[-1])

    def baseline(self):
        return self.total @ (self.levels + self.pulls @ self.context[-1])

    def problem(self, acyclic=True, reward_range=(0.0, 1.0), observes="overall", budget=2):
        n, k = self.slopes.shape
        return sp.Problem(n, budget, acyclic, reward_range, observes=observes, context=k, baseline=True)

    def feedback(self, observes="overall"):
        rounds = len(self.x)
        z = self.z if observes == "both" else np.full(self.y.shape, np.nan)
        context = self.context[:-1] if self.slopes.shape[1] else None
        arrived = np.ones(rounds, bool)
        return sp.Feedback(self.x, z, self.y, np.zeros(rounds, np.int64), arrived, context=context, dose=self.dose)

    def arranged(self, order):
        parts = {name: getattr(self, name)[:, order] for name in ("x", "z", "y", "own", "errors")}
        rows = {name: getattr(self, name)[order] for name in ("slopes", "levels", "pulls")}
        return replace(self, adjacency=self.adjacency[np.ix_(order, order)], **parts, **rows)

    def scaled(self, unit):
        names = ("z", "y", "own", "slopes", "levels", "pulls", "errors")
        return replace(self, **{name: unit * getattr(self, name) for name in names})

    def with_gaps(self, gaps):
        return replace(self, y=np.where(gaps, np.nan, self.y))

    def with_slopes(self, slopes):
        """The same world in which context moves effects."""
        more = self.x * (self.context[:-1] @ slopes.T)
        return replace(self, slopes=slopes, z=self.z + more, y=self.y + more @ self.total.T)


def draw_history(
    generator, adjacency, rounds, *, context=0, noise=0.1, hidden=0.0, spread=0.2, slope=0.15, change=None, dose=None
):
    """spread: deviation of own rewards; hidden: of a common cause of the arms with even numbers; change: its round."""
    n = len(adjacency)
    x = generator.uniform(size=(rounds, n)) < 0.4
    contexts = generator.standard_normal((rounds + 1, context))
    slopes, pulls = slope * generator.standard_normal((n, context)), 0.5 * generator.standard_normal((n, context))
    levels, means = generator.uniform(0, 2, n), generator.uniform(0.1, 0.9, (2, n))
    own = means[(np.arange(rounds + 1) >= (rounds + 1 if change is None else change)).astype(int)]
    shared = hidden * generator.standard_normal((rounds, 1)) * (np.arange(n) % 2 == 0)
    errors = noise * generator.standard_normal((rounds, n)) + shared
    amounts = 1.0 if dose is None else dose
    effects = own[:-1] + contexts[:-1] @ slopes.T + spread * generator.standard_normal((rounds, n))
    z = np.where(x, amounts * effects, 0.0)
    y = (levels + contexts[:-1] @ pulls.T + z + errors) @ np.linalg.inv(np.eye(n) - adjacency).T
    given = np.where(x, dose, 0.0) if dose is not None else None
    return History(adjacency, x, given, z, y, own, slopes, levels, pulls, contexts, errors)


def learn(policy, history, *, acyclic=True, reward_range=(0.0, 1.0), observes="overall", budget=2):
    """The state after a history, at the context of the coming round, and its explanation."""
    problem = history.problem(acyclic, reward_range, observes, budget)
    rounds = history.feedback(observes)
    if observes == "both":
        rounds = rounds._replace(z=np.clip(rounds.z, 0.0, 1.0) if rounds.dose is None else rounds.z)
    past = learns_histories(policy)
    state = past.solve(past.catch_up(policy.init(problem, sp.Rng(0)), rounds, 1, sp.Rng(0)))
    if problem.context:
        state = policy.observe(state, history.context[-1])
    return state, policy.explain_choice(state, sp.Rng(0))
