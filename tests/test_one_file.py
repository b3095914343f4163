"""examples/ndc_sem.py, which imports nothing of the package, decides as the package does, round by round."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import spillover as sp
from spillover.policies.averages import initialisation
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds

PATH = Path(__file__).parent.parent / "examples" / "ndc_sem.py"
CLOSE = 1e-9  # scores this close are equal but for rounding, and may be ordered either way


@pytest.fixture(scope="module")
def one():
    """The names of the file."""
    return SimpleNamespace(**runpy.run_path(str(PATH)))


class Preferring:
    """Random numbers that break ties in favour of some arms."""

    def __init__(self):
        self.arms = np.zeros(0, np.int64)

    def permutation(self, count):
        others = np.setdiff1d(np.arange(count), self.arms)
        return np.concatenate([self.arms, others])


@pytest.mark.parametrize(
    ("law", "delay", "gamma", "xi", "seed"),
    [
        (
            "bernoulli",
            50,
            0.985,
            1e-10,
            0,
        ),  # the paper's rewards and parameters: no feedback yet after the first N rounds
        ("bernoulli", 200, 0.985, 1e-6, 1),
        ("beta", 0, 0.95, 0.1, 2),
        ("beta", 5, 0.9, 0.5, 3),
    ],
)
def test_every_decision_is_that_of_the_package(one, law, delay, gamma, xi, seed):
    horizon, n, s = 420, 10, 4
    world = sp.SyntheticSEM(horizon=horizon, changes=(150, 300), law=law).draw(Rng(seed).at(Purpose.WORLD))
    policy = sp.NDCSEM(discount=gamma, exploration=xi, graph=sp.SparseGraph(sparsity=1e-3))
    ties = Preferring()
    agent = one.NDCSEM(n, s, gamma, xi, 1e-3, ties)
    agent.H = initialisation(n, s, Rng(seed).at(Purpose.START)).T.astype(float)
    levels = world.levels
    twin = one.World(world.adjacency(1), levels, (150, 300), s)
    played, close = {}, 0
    for t, x, outcome, state in rounds(policy, world, delay, Rng(seed), ()):
        ties.arms = np.flatnonzero(x)
        decided = agent.decide()
        if not np.array_equal(decided, x):
            score = one.total_effects(agent.A) * agent.indices()
            assert score @ decided == pytest.approx(score @ x, rel=CLOSE), f"round {t}"
            close += 1
        assert twin.regret(t, x.astype(float)) == pytest.approx(
            float(world.expected(t, world.best(t)) - world.expected(t, x)), abs=1e-9
        )
        played[t] = (x.astype(float), outcome.z, outcome.y)
        agent.advance()
        if t > delay:
            agent.receive(t - delay, *played.pop(t - delay))
        np.testing.assert_allclose(agent.A, state.graph.adjacency, atol=1e-5)
    assert close <= 2
    assert t == horizon


def test_feedback_is_the_model_s(one):
    world = one.synthetic_world(np.random.default_rng(0))
    assert (world.A > 0).sum() == 8
    assert not np.tril(world.A).any()
    x = np.array([1, 0, 1, 0, 0, 1, 0, 0, 1, 0.0])
    z, y = world.play(1, x, np.random.default_rng(1))
    np.testing.assert_allclose(y, world.A @ y + z)
    assert not z[x == 0].any()
    np.testing.assert_allclose(one.total_effects(world.A) @ z, y.sum())
    assert [world.means(t).tolist() == world.beta[k].tolist() for t, k in ((999, 0), (1000, 1), (4000, 3))] == [
        True
    ] * 3


def test_the_agent_learns_and_beats_chance(one):
    """A small run of the file's own loop: regret grows slower than that of random choices, and the graph is found."""
    world = one.synthetic_world(np.random.default_rng(0), changes=(150,))
    agent = one.NDCSEM(10, 4, 0.985, 1e-10, 1e-3, np.random.default_rng(1))
    ours = one.cumulative_regret(agent, world, 10, 300, np.random.default_rng(2))
    chance = one.cumulative_regret(
        one.Random(10, 4, np.random.default_rng(1)), world, 10, 300, np.random.default_rng(2)
    )
    assert ours[-1] < 0.5 * chance[-1]
    assert (np.diff(ours) >= -1e-12).all()
    np.testing.assert_allclose(agent.A, world.A, atol=1e-3)


def test_the_file_needs_nothing_but_numpy_and_scipy():
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", PATH.read_text(encoding="utf-8"), re.MULTILINE))
    assert imported == {"dataclasses", "typing", "numpy", "scipy", "matplotlib"}
    assert 150 <= len(PATH.read_text(encoding="utf-8").splitlines()) <= 300
