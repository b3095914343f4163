"""Decisions from y alone: baselines, context, noise and hidden common causes, on many fresh instances.

`python -m benchmarks real [--instances 100] [--seed S] [--worlds paper noise ...] [--delays 50 200] [--rows ...]`

For each world: final pseudo-regret over the delayed oracle's with InstrumentalSEM that does not see z, with the order
of the arms known and unknown, and with the context ignored where there is one; with SwitchingSEM that sees z, where
there is no context; and with PayoffRegression, which has no graph. In the world `apart` arms do not affect each other.
In the world `parts` each arm has a delay of its own, from 10 to 50 rounds: outcomes are learned as they arrive, or (the
row `waiting`) a round is learned with its last outcome. Ratios are those of the means over the same instances, with 95%
intervals by the delta method. It prints a table for the documents; progress, and a seed that was drawn because none
was given, go to stderr.
"""

import argparse
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import spillover as sp
from spillover.delays import ArmDelays
from spillover.policies import DelayedOracle, PayoffRegression
from spillover.rng import Rng
from spillover.types import Array, Batch

WORLDS: dict[str, dict[str, Any]] = {
    "paper": {},
    "apart": {"edge_density": 0.0},
    "parts": {},
    "baseline": {"baseline": True},
    "noise": {"baseline": True, "noise": 0.5},
    "context": {"baseline": True, "noise": 0.1, "context": 2, "context_effect": 0.0},
    "hidden": {"baseline": True, "noise": 0.1, "confounding": 0.3},
    "all": {"baseline": True, "noise": 0.3, "context": 2, "context_effect": 0.0, "confounding": 0.3},
    "contextual": {"baseline": True, "noise": 0.1, "context": 2, "context_on_baseline": 0.3},
}
DESCRIPTIONS = {
    "paper": "the paper's",
    "apart": "no edges at all",
    "parts": "delays by arm, from 10 to 50 where the delay is 50",
    "baseline": "a baseline",
    "noise": "a baseline, noise 0.5",
    "context": "a baseline, noise 0.1, context that moves it",
    "hidden": "a baseline, noise 0.1, hidden common cause 0.3",
    "all": "a baseline, noise 0.3, context, hidden common cause 0.3",
    "contextual": "the best set depends on the context",
}
SEES_Z = ("baseline", "noise", "hidden")  # where SwitchingSEM that sees z is measured too


@dataclass(frozen=True, kw_only=True)
class Waiting(sp.InstrumentalSEM):
    """Learns a round when its last arm has reported."""

    traits = sp.InstrumentalSEM.traits._replace(accepts_missing=False)


@dataclass(frozen=True, kw_only=True)
class Unordered:
    """The worlds of an environment, in which policies do not know the order of the arms."""

    environment: Any

    def draw(self, rng: Rng, batch: Batch = ()) -> Any:
        return replace(self.environment.draw(rng, batch), acyclic=False)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real", description="Decisions from y alone.")
    parser.add_argument("--instances", type=int, default=100, help="fresh instances of each world")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="NAME")
    parser.add_argument("--delays", nargs="+", type=int, default=[50])
    parser.add_argument("--rows", nargs="+", default=[], metavar="ROW", help="only these, such as 'order known'")
    return parser.parse_args(arguments)


def ratio(regret: Array, oracle: Array) -> str:
    """The ratio of the means with its 95% interval."""
    found = regret.mean() / oracle.mean()
    side = 1.96 * (regret - found * oracle).std(ddof=1) / oracle.mean() / np.sqrt(len(regret))
    return f"{found:.2f} [{found - side:.2f}, {found + side:.2f}]"


def rows_of(name: str, environment: Any) -> dict[str, tuple[Any, Any]]:
    """The worlds and the policy of each row."""
    unordered = Unordered(environment=environment)
    policy = sp.InstrumentalSEM(context_on="both" if name == "contextual" else "baseline")
    rows: dict[str, tuple[Any, Any]] = {"order known": (environment, policy), "order unknown": (unordered, policy)}
    if environment.context:
        rows["context ignored"] = (environment, sp.InstrumentalSEM(context_on="none"))
    if name == "parts":
        rows["waiting"] = (environment, Waiting())
        return rows
    if name in SEES_Z:
        seen = replace(environment, observes="both")
        rows["z seen"] = (seen, sp.SwitchingSEM())
        rows["z seen, unknown"] = (Unordered(environment=seen), sp.SwitchingSEM())
    rows["no graph"] = (environment, PayoffRegression())
    return rows


def measure(name: str, delay: int, given: argparse.Namespace, seed: int) -> None:
    environment = sp.SyntheticSEM(**WORLDS[name], observes="overall")
    options = {"replications": given.instances, "seed": seed, "record": [environment.horizon]}
    oracle = sp.simulate(DelayedOracle(), environment, delay, **options).final_regret
    late = ArmDelays(tuple(np.linspace(delay // 5, delay, 10).astype(int).tolist())) if name == "parts" else delay
    for label, (worlds, policy) in rows_of(name, environment).items():
        if given.rows and label not in given.rows:
            continue
        print(f"{name}, D = {delay}: {label}", file=sys.stderr, flush=True)
        run = sp.simulate(policy, worlds, late, **options)
        print(f"| {DESCRIPTIONS[name]} | {delay} | {label} | {ratio(run.final_regret, oracle)} |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    given = parse(arguments)
    seed = secrets.randbits(32) if given.seed is None else given.seed
    print(f"{given.instances} fresh instances a world, seed {seed}", file=sys.stderr)
    print("| world | delay | policy | regret over the delayed oracle's |\n|---|---|---|---|")
    for name in given.worlds:
        for delay in given.delays:
            measure(name, delay, given, seed)


if __name__ == "__main__":
    main(sys.argv[1:])
