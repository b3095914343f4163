"""The sections of the synthetic study only: adaptation, the graph, delays, ablations, one world."""

import numpy as np

from spillover.environments import Instance, SEMWorld
from spillover.experiments import Results
from spillover.report.figures import (
    delay_figure,
    forest_figure,
    graph_error_figure,
    graph_pair,
    means_figure,
    ratio_panels,
)
from spillover.report.sections import Draw, main_delays
from spillover.report.tables import difference_table, html_table
from spillover.rng import Purpose, Rng
from spillover.studies.synthetic.claims import ablation


def adaptation(results: Results, draw: Draw) -> str:
    pairs = {
        f"D = {delay}": [results.record("fresh", delay, name) for name in ("ndc-sem", "sem-ucb")]
        for delay in main_delays(results)
    }
    caption = (
        "Optimality ratio by stationary period: the share of the oracle's arms that a policy chooses. Mean and "
        "95% interval over fresh worlds."
    )
    return draw("optimality-ratio", ratio_panels(pairs)[0], caption)


def graph(results: Results, draw: Draw) -> str:
    records = [results.record("fresh", delay, "ndc-sem") for delay in main_delays(results)]
    over_time = draw(
        "graph-error",
        graph_error_figure(records),
        "Mean squared error of the adjacency learned by NDC-SEM, mean and 95% band over fresh worlds.",
    )
    first = results.record("picture", main_delays(results)[0], "ndc-sem")
    truth = picture_instance(results).adjacency(1)
    pair = draw(
        "graph-learned",
        graph_pair(truth, first.adjacency[0], names=first.arms or None)[0],
        f"The true graph of one world, and the estimate of NDC-SEM after the last round (D = {first.delay}, "
        "replication 0). An edge j → i is the effect of arm j's overall reward on arm i's.",
    )
    return over_time + pair


def against_delay(results: Results, draw: Draw) -> str:
    records = results.records(world="fresh", policy="ndc-sem-fixed")
    oracle = results.records(world="fresh", policy="delayed-oracle")
    names = {r.delay for r in records}
    means = {name: float(name.split()[-1]) for name in names}
    random = [name for name in names if name.startswith("geometric")]
    caption = (
        "Final expected regret against the mean delay, with the same parameters at all delays; hollow: geometric "
        "delays with the same mean (shifted slightly to the right). 95% intervals over fresh worlds."
    )
    ax = delay_figure([*records, *(r for r in oracle if r.delay in names)], means, random=random)
    return draw("regret-by-delay", ax, caption)


def ablations(results: Results, draw: Draw) -> str:
    body = (
        "<p>Final regret of NDC-SEM without one of its parts, minus that of the full policy, in the same worlds. "
        "Without a discount, weighting by action and by arrival are the same, so two cells of graph × discount × "
        "delay-awareness coincide. At a constant delay the two weightings differ only by a factor γ^D in all counts: "
        "the paper's rule, taken literally, explores as if ξ were γ^-D times larger. So weighting by arrival is better "
        "where less exploration is better.</p>"
    )
    for delay in ("50", "200"):
        differences = ablation(results, delay)
        ax = forest_figure(differences, title=f"D = {delay}", xlabel="final expected regret minus that of NDC-SEM")
        body += draw(f"ablation-{delay}", ax, f"Paired differences at D = {delay}, mean and 95% interval.")
        names = {"label": "NDC-SEM with", "mean": "more regret", "low": "from", "high": "to", "clear": "excludes 0"}
        body += html_table(difference_table(differences).round(0).rename(columns=names), text=("NDC-SEM with",))
    return body


def picture_instance(results: Results) -> SEMWorld:
    """The one world of all replications of the figure."""
    environment = results.experiment.worlds["picture"]
    assert isinstance(environment, Instance)
    return environment.draw(Rng(results.experiment.seed).at(Purpose.WORLD))


def picture_world(results: Results, draw: Draw) -> str:
    world = picture_instance(results)
    rounds = range(1, world.horizon + 1)
    means = np.stack([world.means(t) for t in rounds])
    best = np.stack([world.best(t) for t in rounds])
    ax = means_figure(means, best=best, names=world.arms, changes=world.changes)
    caption = "Expected instantaneous reward of each arm over time in this world; dark: the optimal set."
    return draw("means", ax, caption)
