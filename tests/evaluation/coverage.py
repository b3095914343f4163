"""How often the 95% intervals of an evaluation contain the truth, in simulated worlds of many kinds.

The truth of a policy is its expected payoff in this world over the logged rounds, from replays in the world itself.
`python -m tests.evaluation.coverage` prints the table of docs/evaluate.md.
"""

import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np

import spillover as sp
from spillover.evaluation.posterior import drawn_worlds
from spillover.evaluation.worlds import (
    effect_of_each_arm,
    interval_of,
    log_of,
    of_best_sets,
    of_decisions,
    of_policy,
)
from spillover.policies import find_policy
from tests.evaluation.logs import EpsilonGreedy, draw_logs, true_effects

MEASURED = ("logged", "policy", "difference", "fixed set", "upper bound")
USUAL = {"n_arms": 5, "budget": 2, "edge_density": 0.2, "horizon": 100, "changes": ()}
REAL = {"baseline": True, "noise": 0.2}


class Family(NamedTuple):
    """Worlds of one kind, who made the log, and whose payoff is asked for."""

    name: str
    world: dict
    log: str = "random"
    policy: str = "switching-sem"
    delay: int = 0


FAMILIES = (
    Family("z seen, nothing changes", {}),
    Family("z seen, all arms switch twice", {"changes": (35, 70)}, "ndc-sem", delay=5),
    Family("z seen, two arms switch", {"changes": (50,), "changed": 2}, "epsilon-greedy", "ndc-sem"),
    Family("z seen, drift", {"changes": (50,), "smooth": True, "law": "beta"}, delay=10),
    Family("z seen, baseline and noise", {**REAL, "law": "beta"}, "epsilon-greedy", "ndc-sem"),
    Family("y only", REAL, policy="payoff-regression"),
    Family("y only, epsilon-greedy log", REAL, "epsilon-greedy", "cucb"),
    Family("y only, all arms switch", {**REAL, "changes": (50,)}, policy="cucb", delay=5),
    Family("y only, context", {**REAL, "context": 2, "context_effect": 0.0}, policy="payoff-regression"),
    Family("one outcome for all arms", {**REAL, "observes": "payoff"}, policy="payoff-regression"),
)
HIDDEN = (
    Family("z seen, hidden cause", {**REAL, "confounding": 0.3}, policy="ndc-sem"),
    Family("y only, hidden cause", {**REAL, "confounding": 0.3}, policy="cucb"),
)


def environment_of(family):
    observes = "overall" if family.name.startswith("y only") else "both"
    return sp.SyntheticSEM(**{**USUAL, "observes": observes, **family.world})


def policy_of(name):
    return EpsilonGreedy() if name == "epsilon-greedy" else find_policy(name)()


def inside(draws, truth):
    low, high = interval_of(draws)
    return bool(low <= truth <= high)


def covered(family, worlds, seed, draws=60, replays=30):
    """Whether each truth is in its interval, by kind; and the errors of differences in units of their deviation."""
    environment, policy = environment_of(family), policy_of(family.policy)
    logs = draw_logs(environment, policy_of(family.log), family.delay, worlds, seed)
    found = [told(log_of(history, environment.budget), environment, logs.world) for history in logs.histories]
    truth = true_effects(logs, [log.problem for log in found], policy, family.delay, replays, seed + 1)
    results = []
    for k, log in enumerate(found):
        possible = drawn_worlds(log, draws, seed=k)
        ours, theirs = of_decisions(possible, log.amounts), of_policy(possible, policy, family.delay, seed=k)
        best = np.argsort(-effect_of_each_arm(possible))[: environment.budget]
        fixed = np.zeros_like(log.amounts)
        fixed[:, best] = 1.0
        effects, still = logs.effects[k], logs.still[k]
        logged = (effects * log.amounts).sum()
        most = np.sort(np.maximum(effects, 0.0), axis=-1)[:, -environment.budget :].sum()
        gap = theirs.payoff - ours.payoff
        results.append(
            (
                inside(ours.payoff, logged + still),
                inside(theirs.payoff, truth[k] + still),
                inside(gap, truth[k] - logged),
                inside(of_decisions(possible, fixed).payoff, (effects * fixed).sum() + still),
                most + still <= interval_of(of_best_sets(possible).payoff)[1],
                (truth[k] - logged - gap.mean()) / gap.std(),
                np.ptp(interval_of(gap)) / abs(logged),
            )
        )
    return np.array(results, float)


def told(log, environment, world):
    """The log with the range of z that the world declares: new rewards may be outside of that of the log."""
    if environment.observes != "both":
        return log
    low, high = (float(end) for end in np.asarray(world.problem.reward_range, float))
    return replace(log, problem=log.problem._replace(reward_range=(low, high)))


def print_table(worlds=200, seed=20261121, only=()):
    """Print the share of truths inside, by family."""
    print(f"| worlds | log by | policy | {' | '.join(MEASURED)} |")
    print("|---|---|---|" + "---|" * len(MEASURED))
    for family in FAMILIES + HIDDEN:
        if only and not any(part in family.name for part in only):
            continue
        results = covered(family, worlds, seed)
        shares = " | ".join(f"{share:.1%}" for share in results[:, :5].mean(axis=0))
        print(f"| {family.name} | {family.log} | {family.policy} | {shares} |", flush=True)
        errors, width = results[:, 5], results[:, 6].mean()
        print(f"  errors {errors.mean():+.2f} +- {errors.std():.2f}, width {width:.2f}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print_table(int(sys.argv[1]) if len(sys.argv) > 1 else 200, only=sys.argv[2:])
