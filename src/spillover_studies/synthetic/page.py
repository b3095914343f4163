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
    TEXTS,
    TUNED,
    best_of_all,
    recovery,
)
from spillover_studies.synthetic.numbers import in_short

WITHOUT = ("no-graph", "no-discount", "by-arrival", "no-graph-no-discount", "no-graph-by-arrival", "random-start")


def one_world(results: Results, draw: Draw) -> str:
    """The paper's two figures as it has them: regret and optimality ratio in one instance."""
    runs = len(results.record("picture", DELAYS[0], TUNED).replications)
    panels, caption = (
        ratio_panels(ratio_records(results, "picture")),
        TEXTS("captions.optimality-ratio-picture", runs=runs),
    )
    figures = regret(results, "picture", draw) + draw("optimality-ratio-picture", panels[0], caption)
    return TEXTS("notes.one_world", runs=runs) + figures


def regret(results: Results, world: str, draw: Draw) -> str:
    """The paper's Fig. 2, with both tunings of NDC-SEM."""
    found = default.studies(results, world)
    count = len(next(iter(found.values()))[0].replications)
    return draw(f"regret-{world}", regret_panels(found)[0], TEXTS("captions.regret", count=count))


def final_regret_tables(results: Results, titles: dict[str, str]) -> str:
    return TEXTS("notes.final_regret") + default.final_regret(results, titles)


def ratio_records(results: Results, world: str) -> dict[str, list[Record]]:
    return {
        f"D = {delay}": [results.record(world, delay, name) for name in (TUNED, PRINTED, SEM_UCB)] for delay in DELAYS
    }


def adaptation(results: Results, draw: Draw) -> str:
    panels = ratio_panels(ratio_records(results, "fresh"))
    return draw("optimality-ratio", panels[0], TEXTS("captions.optimality-ratio"))


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
    return TEXTS("notes.counts", worlds=worlds) + html_table(pd.DataFrame(rows), text=("statement",))


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
    return TEXTS("notes.model") + draw("example-graph", ax, TEXTS("captions.example-graph"))


def name_arrow(ax: Axes, x: float, y: float, text: str, color: str) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.text(x, y, text, ha="center", va="center", fontsize=7, color=color, zorder=7, bbox=box)


def graph(results: Results, draw: Draw) -> str:
    records = [results.record("fresh", delay, TUNED) for delay in DELAYS]
    over_time = draw("graph-error", graph_error_figure(records), TEXTS("captions.graph-error"))
    first = results.record("picture", DELAYS[0], TUNED)
    truth = picture_instance(results).adjacency(1)
    pair = graph_pair(truth, first.adjacency[0], names=first.arms or None)
    return over_time + draw("graph-learned", pair[0], TEXTS("captions.graph-learned", delay=first.delay))


def against_delay(results: Results, draw: Draw) -> str:
    names = (ONCE, "no-graph-once", ORACLE)
    records = [r for name in names for r in results.records(world="fresh", policy=name)]
    random = [name for name in results.experiment.delays if name.startswith("uniform")]
    means = {
        name: float(name.split()[-1]) / (2 if name in random else 1) for name in dict.fromkeys(r.delay for r in records)
    }
    ax = delay_figure(records, means, random=random)
    return TEXTS("notes.delay") + draw("regret-by-delay", ax, TEXTS("captions.regret-by-delay"))


def ablations(results: Results, draw: Draw) -> str:
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
    figure = draw("ablation", panels[0], TEXTS("captions.ablation"))
    table = html_table(pd.DataFrame(rows), caption=TEXTS("tables.ablation"), text=("NDC-SEM with",))
    return TEXTS("notes.ablation") + figure + table


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
    return TEXTS("notes.payoff", horizon=horizon) + html_table(pd.DataFrame(rows))


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
    return draw("means", ax, TEXTS("captions.means"))


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
