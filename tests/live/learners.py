"""Learners of every policy that can be used live, and what they are compared by."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import spillover as sp
from spillover.state import leaves

PROBLEM = sp.Problem(n_arms=4, budget=2, overall_range=(0.0, 20.0), weights=(1.0, 1.5, 2.0, 1.0))
LIVE = [name for name in sp.policies.POLICIES if "oracle" not in name]  # oracles need a world


def problem_for(name: str) -> sp.Problem:
    """What the policy is made for: most see z and y, some y alone, or the sum of y."""
    observes = {"instrumental-sem": "overall", "payoff-regression": "payoff"}.get(name, "both")
    return PROBLEM._replace(observes=observes)


def learner_of(name: str, seed: int = 1) -> sp.Learner:
    return sp.Learner(sp.policies.POLICIES[name](), problem_for(name), seed=seed)


def outcome(problem: sp.Problem, x: np.ndarray, draws: np.random.Generator) -> dict[str, Any]:
    """Rewards that spill over from the last arm to all others, as `report` takes them."""
    z = np.where(x, draws.uniform(size=problem.n_arms), 0.0)
    y = z + 0.3 * z[-1]
    if problem.observes == "both":
        return {"z": z, "y": y}
    return {"y": float(y.sum()) if problem.observes == "payoff" else y}


def live(learner: sp.Learner, rounds: int, *, lost: int = 5) -> list[np.ndarray]:
    """Play some rounds; each `lost`-th outcome stays pending. Returns the decisions."""
    draws = np.random.default_rng(learner.rounds)
    played = []
    for _ in range(rounds):
        played.append(learner.choose())
        number = learner.play()
        given = outcome(learner.problem, played[-1], draws)
        if number % lost:
            learner.report(number, **given)
    return played


def content(learner: sp.Learner) -> list[Any]:
    """Everything that a learner keeps, as plain values that can be compared."""
    pending = [[plain(part) for part in choice] for choice in learner.waiting.values()]
    details = {t: [plain(part) for part in one] for t, one in learner.details.items()}
    state = {name: plain(leaf) for name, leaf in leaves(learner.state).items()}
    kept = (learner.rounds, learner.pending, learner.delay_totals, learner.unavailable, plain(learner.context))
    return [*kept, pending, details, state]


def plain(value: Any) -> Any:
    return None if value is None else (np.asarray(value).dtype.str, np.shape(value), np.asarray(value).tobytes())


def each_leaf(arrays: dict[str, np.ndarray], values: dict[str, list[Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """Every array with one of its values, and with all of them, replaced; `values`: by the kind of the array."""
    for name, array in arrays.items():
        for value in values[array.dtype.kind] if array.size else []:
            for places in (slice(-1, None), slice(None)):
                changed = array.copy()
                changed.reshape(-1)[places] = value
                if changed.tobytes() != array.tobytes():
                    yield name, changed
