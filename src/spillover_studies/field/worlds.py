"""The worlds of the rivals' papers, with interventions that shift a node, so that payoffs of arms add up.

Nodes are arms. In a paper with one reward node the payoff is that node alone; `reward = "node"` books it so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.environments import SEMWorld
from spillover.environments.synthetic import check_course, check_pair
from spillover.rng import Rng
from spillover.types import Array, Batch

REWARD = 0  # the reward node: the last effect comes first
REWARDS = ("sum", "node")


class RewardNodeWorld(SEMWorld):
    """The payoff is the outcome of the reward node alone.

    Its outcome is booked less those of all other nodes, so that the sum of what is booked is the payoff. That is a
    linear model, too: every other node acts on the reward node with 1 less than its own effect. What is known of the
    graph's structure stays the same: -1 where there is no edge.
    """

    def structure(self) -> Array:
        edges = np.any(self.graphs != self.booked, axis=-3)
        return np.where(edges, np.nan, self.booked)

    @property
    def booked(self) -> Array:
        """The entries of a graph without edges, (n, n)."""
        found = np.zeros(self.graphs.shape[-2:])
        found[REWARD, REWARD + 1 :] = -1.0
        return found


@dataclass(frozen=True, kw_only=True)
class FieldSEM:
    """What the linear worlds of the field have in common; a subclass says which edges there can be.

    budget: at most so many nodes are shifted in a round. weight_range: of the size of an edge, drawn uniformly.
    harmful: probability that an edge is negative. noise: standard deviation of each node's own noise. reward: "sum",
    the payoff is that of all nodes, or "node", that of the reward node alone. horizon, changes: as in `SyntheticSEM`;
    at a change `changed` nodes get new edges from their causes, and new means.
    """

    budget: int = 3
    weight_range: tuple[float, float] = (0.25, 1.0)
    harmful: float = 0.0
    noise: float = 0.3
    reward: str = "sum"
    horizon: int = 2000
    changes: tuple[int, ...] = ()
    changed: int = 3

    def __post_init__(self) -> None:
        validate.whole("budget", self.budget, 1, self.n_arms)
        check_pair("weight_range", self.weight_range)
        validate.number("harmful", self.harmful, "a probability from 0 to 1", low=0, high=1)
        validate.require(self.reward in REWARDS, "reward", self.reward, f"one of {', '.join(REWARDS)}")
        check_course(self.horizon, self.changes, (), "bernoulli", 4.0, self.noise)
        validate.whole("changed", self.changed, 0, self.n_arms)

    @property
    def n_arms(self) -> int:
        raise NotImplementedError("must be the number of nodes")

    def draw_edges(self, rng: Rng, batch: Batch) -> Any:
        """Which edges there are, (*batch, n, n) or (n, n): causes after their effects."""
        raise NotImplementedError("must say which edges there are")

    def draw(self, rng: Rng, batch: Batch = ()) -> SEMWorld:
        n, changes = self.n_arms, tuple(self.changes)
        graphs, levels = [self.draw_graph(rng, batch)], [self.draw_means(rng, batch)]
        for _ in changes:
            new = (rng.permutation(n) < self.changed)[..., None]
            graphs.append(np.where(new, self.draw_graph(rng, batch), graphs[-1]))
            levels.append(np.where(new[..., 0], self.draw_means(rng, batch), levels[-1]))
        kind = SEMWorld if self.reward == "sum" else RewardNodeWorld
        return kind(
            graphs=np.stack(graphs, axis=-3),
            gain=np.ones((*batch, n)),
            levels=np.stack(levels, axis=-2),
            budget=self.budget,
            horizon=self.horizon,
            changes=changes,
            graph_changes=changes,
            smooth=False,
            law="bernoulli",
            concentration=4.0,
            noise=self.noise,
            acyclic=True,
            arms=("reward", *(str(k) for k in range(1, n))),
        )

    def draw_graph(self, rng: Rng, batch: Batch) -> Array:
        n, (low, high) = self.n_arms, self.weight_range
        size, sign = (rng.uniform(n * n).reshape(*batch, n, n) for _ in range(2))
        weights = np.where(sign < self.harmful, -1.0, 1.0) * (low + (high - low) * size)
        graph = np.where(self.draw_edges(rng, batch), weights, 0.0)
        if self.reward == "node":
            graph[..., REWARD, REWARD + 1 :] -= 1.0
        return np.asarray(graph)

    def draw_means(self, rng: Rng, batch: Batch) -> Array:
        """The mean shift of each node, uniform on [0, 1]; the reward node itself cannot be shifted."""
        means = np.broadcast_to(rng.uniform(self.n_arms), (*batch, self.n_arms)).copy()
        means[..., REWARD] = 0.0
        return means


@dataclass(frozen=True, kw_only=True)
class HierarchicalSEM(FieldSEM):
    """Layers of nodes, each of which acts on all nodes of the next layer, and the last layer on the reward node.

    Varıcı, Shanmugam, Sattigeri and Tajer (2023). width: nodes in a layer (d). layers: the longest path (L).

    >>> import spillover as sp
    >>> world = HierarchicalSEM(width=2, layers=2, budget=2).draw(sp.Rng(0))
    >>> (world.adjacency(1) > 0).astype(int)  # from the reward node, to which both of the last layer point
    array([[0, 1, 1, 0, 0],
           [0, 0, 0, 1, 1],
           [0, 0, 0, 1, 1],
           [0, 0, 0, 0, 0],
           [0, 0, 0, 0, 0]])
    """

    width: int = 3
    layers: int = 3

    def __post_init__(self) -> None:
        validate.whole("width", self.width, 1)
        validate.whole("layers", self.layers, 1)
        super().__post_init__()

    @property
    def n_arms(self) -> int:
        return self.width * self.layers + 1

    def draw_edges(self, rng: Rng, batch: Batch) -> Any:
        layer = np.r_[0, 1 + np.arange(self.n_arms - 1) // self.width]
        return layer[None, :] == layer[:, None] + 1


@dataclass(frozen=True, kw_only=True)
class ParallelSEM(FieldSEM):
    """One root acts on all other nodes, and these on the reward node: the same paper's "enhanced parallel" graph.

    nodes: their number, with the root and the reward node.
    """

    nodes: int = 8

    def __post_init__(self) -> None:
        validate.whole("nodes", self.nodes, 3)
        super().__post_init__()

    @property
    def n_arms(self) -> int:
        return self.nodes

    def draw_edges(self, rng: Rng, batch: Batch) -> Any:
        edges = np.zeros((self.nodes, self.nodes), np.bool_)
        edges[REWARD, 1:-1] = edges[1:-1, -1] = True
        return edges


@dataclass(frozen=True, kw_only=True)
class SubgraphSEM(FieldSEM):
    """A random acyclic graph in which some nodes change at a time, with the edges from their causes.

    The size of the worlds of Peng, Zhang and Mitra (2025, CSL-UCB): 10 nodes, 1,500 rounds. density: the probability of
    an edge between two nodes in their order; it, the number of changes and how many nodes change are ours.
    """

    nodes: int = 10
    density: float = 0.3
    horizon: int = 1500
    changes: tuple[int, ...] = (500, 1000)

    def __post_init__(self) -> None:
        validate.whole("nodes", self.nodes, 1)
        validate.number("density", self.density, "a probability from 0 to 1", low=0, high=1)
        super().__post_init__()

    @property
    def n_arms(self) -> int:
        return self.nodes

    def draw_edges(self, rng: Rng, batch: Batch) -> Any:
        n = self.nodes
        return (rng.uniform(n * n).reshape(*batch, n, n) < self.density) & ~np.tri(n, dtype=np.bool_)
