"""The cases of the corpus: policies, worlds, delays, options and uses."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import spillover as sp
from spillover import constraints, delays, policies
from spillover.environments import ConstrainedSEM
from spillover.graph import KClassGraph, PaperTunedGraph, SelfTunedGraph
from spillover_studies.beyond.variants import MisdatedNDCSEM, MisdatedSwitchingSEM
from tests.corpus.uses import Played, history, live, replayed, simulated

PAPER = sp.SyntheticSEM(horizon=2000, changes=(700, 1400))
OTHERS: dict[str, dict[str, Any]] = {
    "noise": {"noise": 0.1},
    "beta rewards": {"law": "beta"},
    "heavy tails": {"law": "pareto"},
    "gains": {"gain_range": (0.5, 2.0)},
    "smooth": {"smooth": True, "changed": 3},
    "graph changes": {"graph_changes": (600,)},
    "harmful": {"harmful": 0.4},
    "hidden causes": {"noise": 0.1, "confounding": 0.5},
    "baseline": {"baseline": True},
    "dense graph": {"edge_density": 0.4, "weight_range": (0.05, 0.3)},
    "small": {"n_arms": 3, "budget": 1, "edge_density": 0.3},
    "25 arms": {"n_arms": 25, "budget": 8, "edge_density": 0.03},
}
DELAYS = {
    "geometric": sp.GeometricDelay(15.0),
    "uniform": sp.UniformDelay(0, 30),
    "lossy": sp.LossyDelay(sp.ConstantDelay(10), 0.2),
    "heavy-tailed": delays.ParetoDelay(10, 1.5),
    "by arm": delays.ArmDelays((0, 3, 10, sp.UniformDelay(0, 20), 1, 5, 20, sp.GeometricDelay(5.0), 2, 40)),
    "by reward": delays.BadNewsDelay(5, 40),
    "conversions": delays.ConversionDelay(sp.GeometricDelay(10.0), 0.5),
}
MAIN = ("ndc-sem", "sem-ucb", "switching-sem", "discounted-ts", "cucb", "cts", "ftrl")
SLOW = ("glr-sem-ucb", "glr-cucb", "window-cucb", "super-arm-ucb")
EDGES: dict[str, Any] = {name: np.zeros((10, 10), np.bool_) for name in ("required", "forbidden")}
EDGES["required"][0, 5] = EDGES["required"][2, 9] = EDGES["forbidden"][1, 2:6] = True
BOUNDED = (constraints.Exclusive([0, 1, 2]), constraints.Requires(4, [5]), constraints.Group([6, 7, 8, 9], at_most=2))
CYCLIC = sp.FixedSEM(
    adjacency=0.3 * np.roll(np.eye(8), 1, axis=1), means=np.linspace(0.1, 0.9, 8), budget=3, horizon=300, acyclic=False
)
OPTIONS: dict[str, Any] = {
    "ndc-sem, pending": sp.NDCSEM(pending=True),
    "ndc-sem, exploring": sp.NDCSEM(discount=0.95, exploration=0.1),
    "ndc-sem, sweep": sp.NDCSEM(initialisation="sweep"),
    "ndc-sem, unit": sp.NDCSEM(unit=0.5, exploration=0.01),
    "ndc-sem, grid": sp.NDCSEM(discount=np.array([0.9, 0.985]), exploration=0.01),
    "ndc-sem, grid of sparsities": sp.NDCSEM(graph=sp.SparseGraph(sparsity=np.array([0.0, 0.001, 0.1]))),
    "ndc-sem, arrivals undated": policies.AblatedNDCSEM(delay_aware=False, designed_start=False),
    "ndc-sem, no discount": policies.AblatedNDCSEM(discount=1.0),
    "ndc-sem, assumed delay": MisdatedNDCSEM(assumed=20),
    "switching-sem, assumed delay": MisdatedSwitchingSEM(assumed=20),
    **{
        f"ndc-sem, {graph}": sp.NDCSEM(graph=graph)
        for graph in ("none", "payoff", "instrument", "adaptive", "self-tuned")
    },
    "ndc-sem, k-class": sp.NDCSEM(graph=KClassGraph()),
    "ndc-sem, paper-tuned": sp.NDCSEM(graph=PaperTunedGraph()),
    "ndc-sem, signed": sp.NDCSEM(graph=sp.SparseGraph(signed=True)),
    "ndc-sem, signed and self-tuned": sp.NDCSEM(graph=SelfTunedGraph(signed=True)),
    "ndc-sem, known edges": sp.NDCSEM(graph=sp.SparseGraph(**EDGES)),
    "ndc-sem, signed known edges": sp.NDCSEM(graph=sp.SparseGraph(signed=True, **EDGES)),
    "ndc-sem, candidates": sp.NDCSEM(graph=sp.CandidateGraph()),
    "switching-sem, sparse": sp.SwitchingSEM(graph="sparse"),
    "switching-sem, none": sp.SwitchingSEM(graph="none"),
    "switching-sem, signed": sp.SwitchingSEM(graph=sp.AdaptiveGraph(signed=True)),
    "switching-sem, known edges": sp.SwitchingSEM(graph=sp.AdaptiveGraph(**EDGES)),
    "discounted-ts, none": policies.DiscountedTS(graph="none"),
    "sem-ucb, none": sp.SEMUCB(graph="none"),
}


def cases() -> dict[str, Callable[[], Played]]:
    """All cases by name."""
    found: dict[str, Callable[[], Played]] = {}
    make = {name: policies.POLICIES[name] for name in policies.POLICIES}
    sees = {"instrumental-sem": "overall", "payoff-regression": "payoff"}
    few: dict[str, Any] = dict(horizon=120, changes=(60,), n_arms=6, budget=2)
    more = sp.SyntheticSEM(horizon=800, changes=(400,), **OTHERS["25 arms"])
    for name in make:
        policy = make[name]()
        world = sp.SyntheticSEM(**few, observes=sees.get(name, "both"), noise=0.05 * (name in sees))
        found[f"batch, small: {name}"] = partial(simulated, policy, world, 5)
        if name not in sees:
            count = 4 if name in SLOW else 12
            found[f"batch: {name}"] = partial(simulated, policy, PAPER, replications=count)
            found[f"batch, delay 50: {name}"] = partial(simulated, policy, PAPER, 50, replications=count)
        if name not in (*sees, "super-arm-ucb"):  # which would have a million sets of 25 arms
            found[f"batch, 25 arms: {name}"] = partial(simulated, policy, more, sp.GeometricDelay(15.0), replications=4)
        if policy.traits.needs_world:
            continue
        found[f"live: {name}"] = partial(live, policy, world)
        found[f"learners: {name}"] = partial(live, policy, world, many=True)
        if policy.traits.explains and not policy.traits.randomised:
            found[f"replay: {name}"] = partial(replayed, policy, world, 7)
            if not policy.traits.knows_graph:
                found[f"history: {name}"] = partial(history, policy, world)
    for name in MAIN:
        policy = make[name]()
        for label, options in OTHERS.items():
            world = sp.SyntheticSEM(**{"horizon": 1500, "changes": (500, 1000), **options})
            found[f"{label}: {name}"] = partial(simulated, policy, world, 20)
        found[f"one learner: {name}"] = partial(simulated, policy, PAPER, 20, replications=1)
        ruled = ConstrainedSEM(environment=sp.SyntheticSEM(horizon=60, changes=(30,)), constraints=BOUNDED)
        obeying = sp.Constrained(policy=policy, constraints=BOUNDED)
        found[f"constrained: {name}"] = partial(simulated, obeying, ruled, 5, replications=2)
        found[f"cyclic: {name}"] = partial(simulated, policy, CYCLIC, 20)
    for name in (*MAIN, "delayed-oracle", "discounted-cucb"):
        for label, delay in DELAYS.items():
            found[f"{label}: {name}"] = partial(simulated, make[name](), PAPER, delay)
    for label, policy in OPTIONS.items():
        count = 4 if "tuned" in label or "k-class" in label else 12
        found[f"option: {label}"] = partial(simulated, policy, PAPER, 20, replications=count)
    for name in ("ndc-sem", "switching-sem"):
        policy, noisy = make[name](), sp.SyntheticSEM(horizon=150, changes=(75,), noise=0.1)
        found[f"live, 10 arms: {name}"] = partial(live, policy, noisy)
        found[f"learners, 10 arms: {name}"] = partial(live, policy, noisy, many=True)
        found[f"history, 10 arms: {name}"] = partial(history, policy, noisy)
        hundred = sp.SyntheticSEM(n_arms=100, budget=40, edge_density=0.008, horizon=600, changes=(300,))
        found[f"100 arms: {name}"] = partial(simulated, policy, hundred, 20, replications=4)
        found[f"100 arms, noise: {name}"] = partial(simulated, policy, replace(hundred, noise=0.1), 20, replications=2)
        crowd = sp.SyntheticSEM(n_arms=600, budget=60, edge_density=0.001, horizon=250, changes=(120,))
        found[f"600 arms: {name}"] = partial(simulated, policy, crowd, 5, replications=2)
        found[f"live, 600 arms: {name}"] = partial(live, policy, crowd, replications=1)
        found[f"history, 600 arms: {name}"] = partial(history, policy, crowd, replications=1)
        huge = sp.SyntheticSEM(n_arms=2500, budget=100, edge_density=0.0002, horizon=120, changes=(60,))
        found[f"2,500 arms: {name}"] = partial(simulated, policy, huge, 3, replications=1)
    for name in ("switching-sem", "instrumental-sem"):
        world = sp.SyntheticSEM(**few, observes=sees.get(name, "both"), noise=0.05)
        found[f"live, in parts: {name}"] = partial(live, make[name](), world, parts=True)
        found[f"learners, in parts: {name}"] = partial(live, make[name](), world, many=True, parts=True)
    for name, observes in sees.items():
        policy, world = make[name](), sp.SyntheticSEM(**few, baseline=True, noise=0.1, observes=observes)
        moved = replace(world, context=2, confounding=0.3)
        late = delays.ArmDelays((0, 1, 2, 3, 4, 5)) if observes == "overall" else 3
        found[f"context: {name}"] = partial(simulated, policy, moved, 5, replications=3)
        found[f"context on baseline: {name}"] = partial(
            simulated, make[name](context_on="baseline"), moved, late, replications=3
        )
        found[f"live, context: {name}"] = partial(live, policy, moved)
        found[f"learners, context: {name}"] = partial(live, policy, moved, many=True)
        found[f"history, baseline: {name}"] = partial(history, policy, world)
    signed = sp.SyntheticSEM(**few, harmful=0.4, noise=0.1, observes="overall")
    found["signed: instrumental-sem"] = partial(simulated, sp.InstrumentalSEM(signed=True), signed, 5, replications=3)
    found["live, doses: instrumental-sem"] = partial(live, sp.InstrumentalSEM(), signed, dose=0.3)
    paid = sp.SyntheticSEM(**few, baseline=True, noise=0.1, observes="payoff")
    paid_many = sp.SyntheticSEM(horizon=800, changes=(400,), noise=0.1, observes="payoff", **OTHERS["25 arms"])
    regression = policies.PayoffRegression()
    found["live, doses: payoff-regression"] = partial(live, regression, paid, dose=0.3)
    found["learners, doses: payoff-regression"] = partial(live, regression, paid, many=True, dose=0.3)
    for label in ("geometric", "lossy", "heavy-tailed"):
        found[f"{label}: payoff-regression"] = partial(simulated, regression, paid, DELAYS[label])
    found["batch, 25 arms: payoff-regression"] = partial(simulated, regression, paid_many, 20)
    return found
