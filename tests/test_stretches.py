"""Stretches of rounds in one kernel equal the four functions, bit for bit, for each world, delay and option."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive
from spillover.delays import ArmDelays, BadNewsDelay, ConversionDelay, ParetoDelay
from spillover.environments import SEMWorld
from spillover.environments.constrained import ConstrainedSEM
from spillover.graph import AdaptiveGraph, SparseGraph
from spillover.policies import AblatedNDCSEM
from spillover.rng import Purpose
from spillover.simulation import stretches
from spillover.testing.invariance import demand_same_stretches, in_stretches, one_by_one
from spillover.testing.trial import Trial
from spillover_studies.beyond.variants import SyntheticInUnits
from tests.sampling import every

HORIZON = 70
CYCLE = np.array([[0, 0.4, 0, 0.1], [0, 0, 0.4, 0], [0.4, 0, 0, 0], [0.2, 0, 0, 0]])


def world(**options: Any) -> sp.SyntheticSEM:
    return replace(sp.SyntheticSEM(n_arms=6, budget=3, horizon=HORIZON, changes=(20, 45)), **options)


class TooMuch(SEMWorld):
    """A world whose rewards leave their range in round 40."""

    def rewards(self, t, rng):
        return super().rewards(t, rng) * (3.0 if t == 40 else 1.0)


class Broken(sp.SyntheticSEM):
    def draw(self, rng, batch=()):
        return TooMuch(**vars(super().draw(rng, batch)))


WORLDS: dict[str, Any] = {
    "bernoulli": world(),
    "beta": world(law="beta"),
    "pareto": world(law="pareto"),
    "smooth": world(smooth=True),
    "new graphs": world(graph_changes=(13, 50)),
    "noise": world(noise=0.2),
    "gains": world(gain_range=(0.5, 2.0)),
    "harmful": world(harmful=0.5, noise=0.05),
    "baseline": world(baseline=True),
    "context": world(context=2),
    "hidden cause": world(confounding=0.3),
    "everything": world(baseline=True, context=2, confounding=0.2, noise=0.1, smooth=True, graph_changes=(30,)),
    "units": SyntheticInUnits(n_arms=6, budget=3, horizon=HORIZON, changes=(20,), unit=100.0),
    "many arms": world(n_arms=70, budget=9, edge_density=0.02),
    "one arm": world(n_arms=1, budget=1),
    "cycle": sp.FixedSEM(adjacency=CYCLE, means=[0.2, 0.5, 0.8, 0.4], budget=2, horizon=HORIZON, acyclic=False),
    "no rewards": sp.FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=20),
    "constraints": ConstrainedSEM(environment=world(), constraints=(Exclusive([0, 1]),)),
}
DELAYS = {
    "none": sp.ConstantDelay(0),
    "constant": sp.ConstantDelay(11),
    "after the end": sp.ConstantDelay(1000),
    "uniform": sp.UniformDelay(0, 30),
    "geometric": sp.GeometricDelay(12.0),
    "pareto": ParetoDelay(4.0),
    "lossy": sp.LossyDelay(sp.UniformDelay(2, 20), 0.3),
    "recorded": sp.RecordedDelay((np.arange(HORIZON) * 7) % 23),
    "recorded for each": sp.RecordedDelay(np.where(np.arange(6 * HORIZON).reshape(6, -1) % 5 == 1, np.nan, 9.0)),
    "each arm": ArmDelays(tuple(sp.UniformDelay(0, 3 * arm) for arm in range(6))),
    "bad news": BadNewsDelay(2, 19),
    "lost bad news": sp.LossyDelay(sp.LossyDelay(BadNewsDelay(0, 9), 0.2), 0.2),
    "conversions": ConversionDelay(sp.GeometricDelay(4.0), 0.3),
    "recorded conversions": ConversionDelay((np.arange(HORIZON) * 5) % 17, 0.5),
    "lost conversions": sp.LossyDelay(ConversionDelay(sp.UniformDelay(0, 8)), 0.3),
}
POLICIES = {
    "ndc-sem": sp.NDCSEM(),
    "wide bonus": sp.NDCSEM(exploration=0.1, discount=0.9),
    "pending": sp.NDCSEM(pending=True, exploration=1e-3),
    "unit": sp.NDCSEM(unit=0.5, exploration=0.1),
    "unit, pending": sp.NDCSEM(unit=3.0, pending=True, exploration=0.1),
    "signed": sp.NDCSEM(graph=SparseGraph(signed=True)),
    "known edges": sp.NDCSEM(graph=SparseGraph(required=np.eye(6, k=1), forbidden=np.eye(6, k=3))),
    "no graph": sp.NDCSEM(graph="none"),
    "sem-ucb": sp.SEMUCB(graph=SparseGraph(sparsity=1.0)),
    "sem-ucb, unit": sp.SEMUCB(unit=2.0),
    "from arrival": AblatedNDCSEM(delay_aware=False, exploration=1e-3),
    "not discounted": AblatedNDCSEM(discount=1.0, designed_start=False),
}
GRID = sp.NDCSEM(discount=np.array([0.9, 0.99])[:, None], graph=SparseGraph(sparsity=np.array([1e-3, 1.0])[:, None]))


@pytest.mark.parametrize("name", WORLDS)
def test_each_world(name):
    demand_same_stretches(sp.NDCSEM(exploration=1e-3), Trial(WORLDS[name], 3), sp.UniformDelay(0, 9), (3,), 16)


@pytest.mark.parametrize("name", DELAYS)
def test_each_delay(name):
    demand_same_stretches(sp.NDCSEM(pending=True), Trial(world(noise=0.1), 4), DELAYS[name], (2, 3), 8)


@pytest.mark.parametrize("name", POLICIES)
def test_each_option(name):
    demand_same_stretches(POLICIES[name], Trial(world(graph_changes=(33,)), 5), sp.GeometricDelay(6.0), (3,), 32)


SWITCHING = {
    "bernoulli": sp.SwitchingSEM(),
    "units": sp.SwitchingSEM(),
    "new graphs": sp.SwitchingSEM(),  # alarms
    "hidden cause": sp.SwitchingSEM(),
    "baseline": sp.SwitchingSEM(),  # k-class
    "cycle": sp.SwitchingSEM(),
    "harmful": sp.SwitchingSEM(graph=AdaptiveGraph(signed=True)),
    "many arms": sp.SwitchingSEM(),
    "one arm": sp.SwitchingSEM(),
}


@pytest.mark.parametrize("name", SWITCHING)
def test_switching(name):
    demand_same_stretches(SWITCHING[name], Trial(WORLDS[name], 3), sp.UniformDelay(0, 9), (3,), 16)


@pytest.mark.parametrize("delay", every(3, DELAYS))
def test_switching_with_each_delay(delay):
    noisy = replace(world(noise=0.1, graph_changes=(30,)), horizon=HORIZON)
    demand_same_stretches(sp.SwitchingSEM(), Trial(noisy, 4), DELAYS[delay], (2, 3), 8)


def test_one_learner_of_switching():
    demand_same_stretches(sp.SwitchingSEM(), Trial(WORLDS["hidden cause"], 3), sp.UniformDelay(0, 9), (), 16)


def test_only_what_the_kernel_stands_for_is_compiled():
    class OtherGraph(AdaptiveGraph):
        def solve(self, graph):
            return super().solve(graph)

    for graph in ("adaptive", AdaptiveGraph(sparsity="auto"), "sparse", "none"):
        assert sp.SwitchingSEM(graph=graph).runs_compiled
    assert not sp.SwitchingSEM(graph=OtherGraph()).runs_compiled


@pytest.mark.long
@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_option_with_each_delay_in_each_world(policy, delay):
    for name, environment in WORLDS.items():
        n = environment.draw(sp.Rng(0)).problem.n_arms
        if n == 6 or (policy != "known edges" and delay != "each arm"):
            demand_same_stretches(POLICIES[policy], Trial(WORLDS[name], 6), DELAYS[delay], (3,), 16)


@pytest.mark.parametrize("delay", every(3, DELAYS))
def test_a_grid(delay):
    demand_same_stretches(GRID, Trial(world(smooth=True), 7), DELAYS[delay], (2, 3), 16)


@pytest.mark.parametrize("name", ["everything", "smooth", "constraints"])
def test_measures_are_those_of_the_four_functions(name, monkeypatch):
    def run():
        return sp.simulate(GRID, WORLDS[name], sp.UniformDelay(0, 20), replications=3, seed=8, record=9)

    compiled = run()
    monkeypatch.setattr(sp.NDCSEM, "runs_compiled", False)
    plain = run()
    for measure in ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency"):
        np.testing.assert_array_equal(getattr(compiled, measure), getattr(plain, measure))


def test_other_delays_that_depend_on_rewards_are_played_round_by_round():
    class TwiceAsLate(BadNewsDelay):
        foreseeable = False

        def draw_given(self, t, x, z, rng, batch=()):
            return 2 * super().draw_given(t, x, z, rng, batch)

    drawn = world().draw(sp.Rng(0).at(Purpose.WORLD))
    for delay in (TwiceAsLate(1, 9), sp.LossyDelay(TwiceAsLate(1, 9), 0.1), ArmDelays((BadNewsDelay(0, 3),) * 6)):
        assert not stretches.fuses(drawn, sp.NDCSEM(), delay)
    assert sp.simulate(sp.NDCSEM(), world(), TwiceAsLate(1, 9)).regret.shape == (1, HORIZON)


@pytest.mark.parametrize("law", ["bernoulli", "beta", "pareto"])
def test_delays_that_depend_on_rewards_of_each_law(law):
    for delay in ("bad news", "conversions"):
        demand_same_stretches(sp.NDCSEM(), Trial(world(law=law, smooth=True), 10), DELAYS[delay], (2, 3), 16)


def test_a_policy_with_another_round_is_not_played_by_the_compiled_form_of_its_base():
    class OtherChoice(sp.NDCSEM):
        def select(self, state, rng):
            return super().select(state, rng)

    class OtherUpdate(sp.NDCSEM):
        def learn(self, state, feedback, rng):
            return super().learn(state, feedback, rng)

    class OtherGraph(SparseGraph):
        def solve(self, graph):
            return graph

    assert sp.NDCSEM().runs_compiled
    assert not any(policy.runs_compiled for policy in (OtherChoice(), OtherUpdate(), sp.NDCSEM(graph=OtherGraph())))
    assert not sp.NDCSEM(graph=sp.SparseGraph(row_bound=None)).runs_compiled
    assert stretches.as_compiled(sp.Constrained(policy=sp.NDCSEM(), constraints=(Exclusive([0, 1]),))) is None
    assert sp.SwitchingSEM().runs_compiled


def test_invalid_outcomes_are_reported_as_by_the_four_functions():
    with pytest.raises(ValueError, match=r"^z of row \d = .*: must be inside the problem's reward_range \[0, 1\]"):
        sp.simulate(sp.NDCSEM(), Broken(horizon=HORIZON, changes=()), 2, replications=3)


@pytest.mark.parametrize("policy", [sp.NDCSEM(graph="none"), GRID])
def test_results_do_not_depend_on_the_number_of_threads(policy, monkeypatch):
    monkeypatch.setattr("spillover.simulation.replications.FEWEST_DECISIONS", 0)
    runs = [
        sp.simulate(policy, world(noise=0.1), BadNewsDelay(2, 9), replications=9, first=4, threads=threads)
        for threads in (1, 2, 4, 20, None)
    ]
    for run in runs[1:]:
        for measure in ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency"):
            np.testing.assert_array_equal(getattr(run, measure), getattr(runs[0], measure))


def test_memory_of_a_stretch_is_bounded():
    for n, batch, graphs in ((10, (100,), 0.02), (10, (220, 20), 1.0), (1000, (5,), 1.0), (3, (), 0.0)):
        rounds = stretches.rounds_at_once(n, batch, graphs)
        assert stretches.FEWEST_ROUNDS <= rounds <= stretches.MOST_ROUNDS
        numbers = rounds * int(np.prod(batch, dtype=int)) * n * (1 + graphs * n / 4)
        assert rounds == stretches.FEWEST_ROUNDS or numbers <= stretches.MOST_NUMBERS
        assert rounds & (rounds - 1) == 0


def test_the_rings_grow_with_the_longest_delay():
    late = sp.RecordedDelay([*[1] * 20, 45, *[1] * (HORIZON - 21)])
    trial = Trial(world(), 9)
    ours, theirs = in_stretches(sp.NDCSEM(), trial, late, (3,), 8), one_by_one(sp.NDCSEM(), trial, late, (3,))
    np.testing.assert_array_equal(ours["state.averages.sums"], theirs["state.averages.sums"])
    flight = stretches.empty_flight(2, (3,), 8)
    assert stretches.grown(flight, 7, 9) is flight
    assert stretches.grown(flight, 8, 9).x.shape == (3, 16, 2)
