"""The sections of the report: each takes results and says in words, tables and figures what they hold."""

from collections.abc import Callable
from html import escape

import numpy as np
from matplotlib.axes import Axes

from spillover.environments import Instance, SEMWorld
from spillover.experiments import Record, Results
from spillover.metrics import mean_interval
from spillover.report.claims import ablation, shown
from spillover.report.figures import (
    delay_figure,
    forest_figure,
    graph_error_figure,
    graph_pair,
    means_figure,
    ratio_panels,
    regret_panels,
)
from spillover.report.tables import difference_table, final_table, html_table, parameter_table, show_final
from spillover.rng import Purpose, Rng

Draw = Callable[[str, Axes, str], str]
WORLDS = {"fresh": "Regret over fresh worlds", "picture": "Regret in one world, as in the paper's picture"}


def main_policies(results: Results) -> list[str]:
    """The policies of the first study: those that are compared with each other."""
    return list(results.experiment.studies[0].policies)


def main_delays(results: Results) -> list[str]:
    return list(results.experiment.studies[0].delays)


def main_records(results: Results, world: str, delay: str) -> list[Record]:
    wanted = main_policies(results)
    return [r for r in results.records(world=world, delay=delay) if r.policy in wanted]


def studies(results: Results, world: str) -> dict[str, list[Record]]:
    """Records of a world by delay, under the titles that figures print."""
    found = {delay: main_records(results, world, delay) for delay in main_delays(results)}
    return {f"D = {delay}": records for delay, records in found.items() if records}


def subtitle(results: Results) -> str:
    experiment = results.experiment
    seconds = sum(record.seconds for record in results.records())
    return (
        f"{len(results.records())} combinations of world, delay and policy, seed {experiment.seed}; "
        f"{seconds:,.0f} core-seconds of computing. Made by Spillover from the results beside this page."
    )


def summary(results: Results) -> str:
    """The best policies at each delay, in a sentence each."""
    world = next(iter(results.experiment.worlds))
    lines = []
    for title, records in studies(results, world).items():
        policies = [r for r in records if "oracle" not in r.policy]
        ranked = sorted(policies, key=lambda r: float(r.regret[:, -1].mean()))
        told = "; ".join(f"{escape(r.label)} {shown(mean_interval(r.regret[:, -1]))}" for r in ranked[:3])
        lines.append(f"<li><b>{escape(title)}</b>: final expected regret, least first: {told}.</li>")
    return f"<p>World <i>{escape(world)}</i>, mean with 95% interval over replications.</p><ul>{''.join(lines)}</ul>"


def regret_title(world: str) -> str:
    return WORLDS.get(world, f"Regret in the world {world}")


def regret(results: Results, world: str, draw: Draw) -> str:
    found = studies(results, world)
    if not found:
        return "<p>Nothing was run in this world.</p>"
    count = len(next(iter(found.values()))[0].replications)
    caption = (
        f"Cumulative expected regret by round, mean and 95% band of {count} replications; vertical lines: the means "
        "change. The delayed oracle knows what the means were in the latest round whose outcome has arrived."
    )
    return draw(f"regret-{world}", regret_panels(found)[0], caption)


def final(results: Results) -> str:
    tables = []
    for world in results.experiment.worlds:
        records = [r for group in studies(results, world).values() for r in group]
        if records:
            caption = f"{regret_title(world)}: final expected regret, mean [95% interval]"
            tables.append(f'<div class="wide">{html_table(show_final(final_table(records)), caption=caption)}</div>')
    note = (
        "<p>The blind rounds are the first D + 1, in which nobody has heard anything. The reference is the delayed "
        "oracle; ratios are paired. The last column is the share of replications in which a policy has the least "
        "regret.</p>"
    )
    return note + "".join(tables)


def adaptation(results: Results, draw: Draw) -> str:
    pairs = {
        f"D = {delay}": [results.record("fresh", delay, name) for name in ("ndc-sem", "sem-ucb")]
        for delay in main_delays(results)
    }
    caption = (
        "Optimality ratio by stationary period: the share of the oracle's arms that a policy chose. Mean and 95% "
        "interval over fresh worlds."
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
    truth = the_picture(results).adjacency(1)
    pair = draw(
        "graph-learned",
        graph_pair(truth, first.adjacency[0], names=first.arms or None)[0],
        f"The true graph of the picture's world, and what NDC-SEM holds after the last round (D = {first.delay}, "
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
        "Final expected regret against the mean delay, one setting of the parameters for all; hollow: geometric "
        "delays of the same mean (drawn a little to the right of it). 95% intervals over fresh worlds."
    )
    ax = delay_figure([*records, *(r for r in oracle if r.delay in names)], means, random=random)
    return draw("regret-by-delay", ax, caption)


def ablations(results: Results, draw: Draw) -> str:
    body = (
        "<p>Final regret of NDC-SEM without a part of it, less that of the whole, in the same worlds. Without a "
        "discount there is no weight for the delay to spoil, so two cells of graph × discount × delay-awareness are "
        "one. At a constant delay weights by action and by arrival differ by the factor γ^D in all counts alone: "
        "literally the paper's rule explores as if ξ were γ^-D times larger, and where less exploration is better, "
        "weighting by arrival is.</p>"
    )
    for delay in ("50", "200"):
        differences = ablation(results, delay)
        ax = forest_figure(differences, title=f"D = {delay}", xlabel="final expected regret above the whole NDC-SEM's")
        body += draw(f"ablation-{delay}", ax, f"Paired differences at D = {delay}, mean and 95% interval.")
        names = {"label": "NDC-SEM with", "mean": "more regret", "low": "from", "high": "to", "clear": "0 left out"}
        body += html_table(difference_table(differences).round(0).rename(columns=names), text=("NDC-SEM with",))
    return body


def the_picture(results: Results) -> SEMWorld:
    """The world that all replications of the picture meet."""
    environment = results.experiment.worlds["picture"]
    assert isinstance(environment, Instance)
    return environment.draw(Rng(results.experiment.seed).at(Purpose.WORLD))


def picture_world(results: Results, draw: Draw) -> str:
    world = the_picture(results)
    rounds = range(1, world.horizon + 1)
    means = np.stack([world.means(t) for t in rounds])
    best = np.stack([world.best(t) for t in rounds])
    ax = means_figure(means, best=best, names=world.arms, changes=world.changes)
    caption = "Expected instantaneous reward of each arm over time in the picture's world; dark: the optimal set."
    return draw("means", ax, caption)


def parameters(results: Results) -> str:
    table = parameter_table(results.experiment, main_policies(results), main_delays(results))
    return f'<div class="wide">{html_table(table.fillna("–"), text=("policy",))}</div>'


def settings(results: Results) -> str:
    """The experiment file itself, what was changed after reading it, and what computed it."""
    experiment = results.experiment
    _, about = results.store.read(next(iter(results.listed.values()))[0])
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    told = ", ".join(f"{name} = {value}" for name, value in experiment.changes.items())
    changed = f"<p>Changed when it was run: {escape(told)}.</p>" if told else ""
    return (
        f"<p>Seed {experiment.seed}. {escape(versions)}.</p>{changed}"
        f"<details open><summary>The experiment file</summary><pre>{escape(experiment.text)}</pre></details>"
    )
