"""The sections that the page of any experiment has: words, tables and figures from its results."""

from collections.abc import Callable, Mapping
from html import escape

from matplotlib.axes import Axes

from spillover.experiments import Record, Results
from spillover.metrics import mean_interval
from spillover.report.claims import shown
from spillover.report.figures import regret_panels
from spillover.report.tables import final_table, html_table, parameter_table, show_final

Draw = Callable[[str, Axes, str], str]


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


def regret_title(world: str, titles: Mapping[str, str]) -> str:
    return titles.get(world, f"Regret in the world {world}")


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


def final(results: Results, titles: Mapping[str, str]) -> str:
    """Tables of final regret; titles: what worlds are called where it is not by their name in the file."""
    tables = []
    for world in results.experiment.worlds:
        records = [r for group in studies(results, world).values() for r in group]
        if records:
            caption = f"{regret_title(world, titles)}: final expected regret, mean [95% interval]"
            tables.append(f'<div class="wide">{html_table(show_final(final_table(records)), caption=caption)}</div>')
    note = (
        "<p>The blind rounds are the first D + 1, in which nobody has heard anything. The reference is the delayed "
        "oracle; ratios are paired. The last column is the share of replications in which a policy has the least "
        "regret.</p>"
    )
    return note + "".join(tables)


def parameters(results: Results) -> str:
    table = parameter_table(results.experiment, main_policies(results), main_delays(results))
    return f'<div class="wide">{html_table(table.fillna("–"), text=("policy",))}</div>'


def settings(results: Results) -> str:
    """The experiment file itself, what was changed after reading it, and what computed it."""
    experiment = results.experiment
    _, about = results.store.read(next(iter(results.cell_ids.values()))[0])
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    told = ", ".join(f"{name} = {value}" for name, value in experiment.changes.items())
    changed = f"<p>Changed when it was run: {escape(told)}.</p>" if told else ""
    return (
        f"<p>Seed {experiment.seed}. {escape(versions)}.</p>{changed}"
        f"<details open><summary>The experiment file</summary><pre>{escape(experiment.text)}</pre></details>"
    )
