"""Write the page of the paper's synthetic study: what to take away, the claims, the paper's figures, and the tuning."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.environments import Instance, SEMWorld, example_graph
from spillover.experiments import Record, Results
from spillover.figures import (
    delay_figure,
    forest_figure,
    graph_error_figure,
    graph_figure,
    graph_pair,
    means_figure,
    new_panels,
    ratio_panels,
    regret_panels,
)
from spillover.figures.graph import EDGE_STYLES, INPUT, arc, edges_of, input_depth, point_on
from spillover.figures.style import WIDTH
from spillover.metrics import mean_interval
from spillover.report import page as default
from spillover.report.claims import claims_body, final_regret, format_ci, paired_interval
from spillover.report.page import Draw, Part
from spillover.report.tables import html_table, paired_difference, parameter_table
from spillover.rng import Purpose, Rng
from spillover.types import BoolArray
from spillover_studies.synthetic import tuned
from spillover_studies.synthetic.claims import all_claims
from spillover_studies.synthetic.measures import (
    DELAYS,
    EXACT,
    ONCE,
    ORACLE,
    PRINTED,
    RIVALS,
    SEM_UCB,
    SEM_UCB_TUNED,
    SHOWN,
    TUNED,
    best_of_all,
    recovery,
)
from spillover_studies.synthetic.numbers import in_short

NDC_SEM_SHOWN = (
    "NDC-SEM has the parameters that were tuned for each delay on other worlds, and beside them those that the paper "
    "prints."
)
WITHOUT = ("no-graph", "no-discount", "by-arrival", "no-graph-no-discount", "no-graph-by-arrival", "random-start")


def one_world(results: Results, draw: Draw) -> str:
    """The paper's two figures as it has them: regret and optimality ratio in one instance."""
    runs = len(results.record("picture", DELAYS[0], TUNED).replications)
    note = (
        f"<p>One world, as in the paper: graph and means are drawn once, from a seed that was not chosen by its "
        f"outcome, and {runs} runs in it differ in the rewards only. The paper's own means are known from a figure "
        "only. What one world shows need not hold in another: the next section counts.</p>"
    )
    figure = regret(results, "picture", draw)
    ratio = draw(
        "optimality-ratio-picture",
        ratio_panels(ratio_records(results, "picture"))[0],
        f"The paper's Fig. 6: optimality ratio by stationary period in this world, mean and 95% interval of {runs} "
        f"runs. {NDC_SEM_SHOWN}",
    )
    return note + figure + ratio


def regret(results: Results, world: str, draw: Draw) -> str:
    """The paper's Fig. 2, with both tunings of NDC-SEM."""
    found = default.studies(results, world)
    count = len(next(iter(found.values()))[0].replications)
    caption = (
        f"The paper's Fig. 2: cumulative expected regret by round, mean and 95% band of {count} replications; vertical "
        "lines: changes of the means. The delayed oracle knows the means of the latest round whose outcome has "
        f"arrived. Switching-SEM is ours, not the paper's; it has no parameters. {NDC_SEM_SHOWN}"
    )
    return draw(f"regret-{world}", regret_panels(found)[0], caption)


def final_regret_tables(results: Results, titles: dict[str, str]) -> str:
    note = (
        "<p>Both tunings of NDC-SEM compete for the last column; how often each has less regret than all rivals is "
        "counted above.</p>"
    )
    return note + default.final_regret(results, titles)


def ratio_records(results: Results, world: str) -> dict[str, list[Record]]:
    return {
        f"D = {delay}": [results.record(world, delay, name) for name in (TUNED, PRINTED, SEM_UCB)] for delay in DELAYS
    }


def adaptation(results: Results, draw: Draw) -> str:
    caption = (
        "The paper's Fig. 6 over fresh worlds: optimality ratio by stationary period, the share of the oracle's arms "
        f"that a policy chooses. Mean and 95% interval. {NDC_SEM_SHOWN}"
    )
    return draw("optimality-ratio", ratio_panels(ratio_records(results, "fresh"))[0], caption)


def statements(results: Results, delay: str) -> dict[str, BoolArray]:
    """In which of the fresh worlds each statement is true at a delay."""
    names = (TUNED, PRINTED, ONCE, SEM_UCB, SEM_UCB_TUNED)
    records = {name: results.record("fresh", delay, name) for name in names}
    regret = {name: final_regret(record) for name, record in records.items()}
    random = results.record("fresh", delay, "random")
    waits = {name: recovery(records[name], random)[0].mean(axis=-1) for name in (TUNED, PRINTED, SEM_UCB)}
    found: dict[str, BoolArray] = {}
    for name in (TUNED, PRINTED, ONCE):
        found[f"{records[name].label}: least regret of all"] = best_of_all(results, delay, name, RIVALS)
        found[f"{records[name].label}: less regret than SEM-UCB"] = regret[name] < regret[SEM_UCB]
    found[f"{records[TUNED].label}: less regret than SEM-UCB, tuned"] = regret[TUNED] < regret[SEM_UCB_TUNED]
    for name in (TUNED, PRINTED):
        later, others = (records[p].optimality_ratio[:, 1:] for p in (name, SEM_UCB))
        found[f"{records[name].label}: recovers sooner than SEM-UCB"] = waits[name] < waits[SEM_UCB]
        closer = np.asarray((later > others).all(axis=-1))
        found[f"{records[name].label}: higher optimality ratio than SEM-UCB in every period after a change"] = closer
    found[f"{records[TUNED].label}: graph learned (error below {EXACT:g})"] = records[TUNED].graph_error[:, -1] < EXACT
    return found


def counts(results: Results) -> str:
    """Count the fresh worlds in which each statement holds."""
    worlds = len(results.record("fresh", DELAYS[0], TUNED).replications)
    found = {delay: statements(results, delay) for delay in DELAYS}
    rows = [
        {"statement": text, **{f"D = {delay}": int(found[delay][text].sum()) for delay in DELAYS}}
        for text in found[DELAYS[0]]
    ]
    note = (
        f"<p>The number of worlds, of {worlds}, in which a statement is true of the single run in that world. A paper "
        "that shows one instance shows one of these worlds.</p>"
    )
    return note + html_table(pd.DataFrame(rows), text=("statement",))


def model(draw: Draw) -> str:
    """Fig. 1 of the paper, in its own order of the arms."""
    environment = example_graph()
    matrix = environment.matrix()
    ax = graph_figure(matrix, weights=False)
    edges = edges_of(matrix)
    for edge in edges:
        far = 0.1 if abs(edge.cause - edge.effect) == 1 else 0.2  # to the right, off the other arcs and inputs
        x, y = point_on(arc(edge), 0.5 + far if edge.cause < edge.effect else 0.5 - far)
        name_arrow(ax, x, y, f"A[{edge.effect + 1},{edge.cause + 1}]", EDGE_STYLES[edge.kind].color)
    for arm in range(len(matrix)):
        name_arrow(ax, arm, 0.8 * input_depth(len(matrix), edges), f"F[{arm + 1},{arm + 1}]", INPUT)
    caption = (
        "The paper's Fig. 1: four arms, the effects A[i,j] of overall reward j on overall reward i, "
        "and the instantaneous rewards z from below, with gains F, which are 1 from there on."
    )
    note = (
        "<p>The overall reward of an arm is its own instantaneous reward, if it is chosen, plus what other arms' "
        "overall rewards add: y = A y + z. The payoff of a round is the sum of y. An edge j → i is A[i, j].</p>"
    )
    return note + draw("example-graph", ax, caption)


def name_arrow(ax: Axes, x: float, y: float, text: str, color: str) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.text(x, y, text, ha="center", va="center", fontsize=7, color=color, zorder=7, bbox=box)


def graph(results: Results, draw: Draw) -> str:
    records = [results.record("fresh", delay, TUNED) for delay in DELAYS]
    over_time = draw(
        "graph-error",
        graph_error_figure(records),
        "Mean squared error of the adjacency learned by NDC-SEM (tuned), mean and 95% band over fresh worlds. The "
        "mean is that of a few worlds: an arm that is not chosen shows nothing of its effects until the means change. "
        "The claims above count the worlds in which the graph is learned.",
    )
    first = results.record("picture", DELAYS[0], TUNED)
    truth = picture_instance(results).adjacency(1)
    pair = draw(
        "graph-learned",
        graph_pair(truth, first.adjacency[0], names=first.arms or None)[0],
        f"The true graph of one world, and the estimate of NDC-SEM (tuned) after the last round (D = {first.delay}, "
        "replication 0). An edge j → i is the effect of arm j's overall reward on arm i's.",
    )
    return over_time + pair


def against_delay(results: Results, draw: Draw) -> str:
    names = (ONCE, "no-graph-once", ORACLE)
    records = [r for name in names for r in results.records(world="fresh", policy=name)]
    random = [name for name in results.experiment.delays if name.startswith("uniform")]
    means = {
        name: float(name.split()[-1]) / (2 if name in random else 1) for name in dict.fromkeys(r.delay for r in records)
    }
    note = (
        "<p>One setting of γ and ξ for all delays, with and without the graph. A short delay needs a larger ξ: the "
        "paper's counts contain a factor γ^D, so with one ξ the bonus is smaller at D = 0 than at D = 50, and the "
        "regret need not be lowest there.</p>"
    )
    caption = (
        "Final expected regret against the mean delay, with the same parameters at all delays; hollow: random delays, "
        "uniform from 0 to twice the mean (shifted slightly to the right). 95% intervals over fresh worlds."
    )
    return note + draw("regret-by-delay", delay_figure(records, means, random=random), caption)


def ablations(results: Results, draw: Draw) -> str:
    body = (
        "<p>Final regret of NDC-SEM, tuned, without one of its parts (all else equal) minus that of the full policy, "
        "in the same worlds. Without a discount, weighting by action and by arrival are the same, so two cells of "
        "graph × discount × delay-awareness coincide. At a constant delay the two weightings differ only by a factor "
        "γ^D in all counts: the paper's rule, taken literally, explores as if ξ were γ^-D times larger. So weighting "
        "by arrival is better where less exploration is better.</p>"
    )
    panels = new_panels(len(DELAYS), 1, size=(WIDTH, 3.4 * len(DELAYS)), sharex=True)
    rows = [{"NDC-SEM with": results.experiment.policies[name].label} for name in WITHOUT]
    for ax, delay in zip(panels, DELAYS, strict=True):
        full = results.record("fresh", delay, TUNED)
        others = [results.record("fresh", delay, name) for name in WITHOUT]
        forest_figure(
            [paired_difference(other, full, label=other.label) for other in others],
            ax=ax,
            title=f"D = {delay}",
            xlabel="final expected regret minus that of NDC-SEM" if delay == DELAYS[-1] else "",
        )
        for row, other in zip(rows, others, strict=True):
            row[f"D = {delay}"] = format_ci(paired_interval(other, full))
    differences = (
        "Final expected regret minus that of NDC-SEM, tuned for each delay: paired differences, mean and 95% interval; "
        "filled: the interval excludes 0."
    )
    figure = draw("ablation", panels[0], differences)
    caption = "More regret than NDC-SEM, tuned for each delay, mean [95% interval]"
    return body + figure + html_table(pd.DataFrame(rows), caption=caption, text=("NDC-SEM with",))


def payoffs(results: Results) -> str:
    """Average payoff (the paper's objective) and computing time of each policy."""
    rows = []
    for name in SHOWN:
        records = [results.record("fresh", delay, name) for delay in DELAYS]
        row = {"policy": records[0].label}
        for delay, record in zip(DELAYS, records, strict=True):
            row[f"payoff a round, D = {delay}"] = format_ci(mean_interval(record.payoff[:, -1] / record.horizon), 2)
        runs = sum(len(record.replications) for record in records)
        row["milliseconds a run"] = f"{1e3 * sum(record.seconds for record in records) / runs:,.0f}"
        rows.append(row)
    horizon = results.record("fresh", DELAYS[0], TUNED).horizon
    note = (
        f"<p>The average payoff is what the paper's agent maximises; more is better. A run is {horizon:,} rounds; the "
        "times are those of this computer, of runs that are simulated together, with everything that is measured.</p>"
    )
    return note + html_table(pd.DataFrame(rows))


def parameters(results: Results) -> str:
    """The paper's Table I, with every tuning."""
    frame = parameter_table(results.experiment, [name for name in SHOWN if name != ORACLE], DELAYS)
    shown = frame[["policy", "delay", "discount γ", "exploration ξ", "sparsity λ"]].fillna("–")
    caption = "Parameters; the rows of the printed ones are the paper's Table I"
    return html_table(shown, caption=caption, text=("policy", "delay"))


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
    caption = (
        "The paper's Fig. 5: expected instantaneous reward of each arm over time, in this world; blue: the optimal set."
    )
    return draw("means", ax, caption)


TITLES = {"fresh": "Regret over fresh worlds", "picture": "Regret in one world, as in the paper's figure"}


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; an incomplete study gets the default page."""
    if not is_complete(results):
        yield from default.page_parts(results, draw)
        return
    claims = all_claims(results)
    yield "short", "In short", in_short(results, claims)
    yield "model", "The model (the paper's Fig. 1)", model(draw)
    yield "claims", "The paper's claims and our findings", claims_body(claims)
    yield "regret-fresh", TITLES["fresh"], regret(results, "fresh", draw)
    yield "regret-picture", "One world, as in the paper's figures", one_world(results, draw)
    yield "counts", "In how many worlds each statement holds", counts(results)
    yield "tuning", "Tuning", tuned.tuning(results, draw)
    yield "table", "Final regret", final_regret_tables(results, TITLES)
    yield "payoff", "Average payoff and computing time", payoffs(results)
    yield "adaptation", "Adaptation to changes", adaptation(results, draw)
    yield "graph", "The graph", graph(results, draw)
    yield "delay", "Regret against the delay", against_delay(results, draw)
    yield "ablation", "What each part contributes", ablations(results, draw)
    yield "world", "The world of the figures", picture_world(results, draw)
    yield "parameters", "Parameters", parameters(results)
    yield "settings", "Settings, seeds, versions", default.settings(results)


def is_complete(results: Results) -> bool:
    """Whether no part of the study was left out (`Experiment.changed(worlds=...)`): the claims need all of it."""
    return not {"worlds", "delays", "policies"} & set(results.experiment.changes)
