"""The page of the study of the field: who wins where, whether a graph helps, and what each policy knows."""

from collections.abc import Iterator
from html import escape

import pandas as pd

from spillover.contracts import as_policy
from spillover.experiments import Results
from spillover.figures import Ratio, ratios_figure
from spillover.report import page as default
from spillover.report.page import Draw, Part, short_body
from spillover.report.tables import final_table, html_table, show_final
from spillover_studies.field.sentences import (
    delay_sentence,
    goal_sentence,
    graph_sentence,
    structure_sentence,
    winner_sentence,
)
from spillover_studies.field.standings import (
    WORLDS,
    Setting,
    Standing,
    goals,
    graph_against_payoff,
    ratio_text,
    settings_of,
    share_of_random,
    standings,
    structure_against_none,
)

FIGURED = (
    "switching-sem", "switching-sem-signed", "instrumental-sem", "payoff-regression", "sem-ucb", "cucb", "lin-sem-ucb",
    "csl-ucb", "network-etc", "netc",
)  # fmt: skip
OWN = {"changes", "drift", "hierarchical", "parallel", "sub-graphs"}


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; results without anything to compare get the default page."""
    if not standings(results):
        yield from default.page_parts(results, draw)
        return
    yield "short", "In short", in_short(results)
    yield "winners", "Who wins where", winners(results, draw)
    yield "ours", "Our policies against the best of the others", ours(results)
    yield "graph", "When a graph helps", graph(results)
    yield "delay", "When a delay helps", f"<p><b>{escape(delay_sentence(results))}</b></p>"
    yield "all", "All policies", all_policies(results)
    yield "knows", "What each knows", knows(results)
    yield "definitions", "Regret, by their definitions and ours", definitions()
    yield "parameters", "Parameters", default.parameters(results, without=("graph",))
    yield "settings", "Settings, seeds, versions", default.settings(results)


def in_short(results: Results) -> str:
    """Computed sentences, then the winners at the middle delay."""
    sentences = [winner_sentence(results), goal_sentence(results), graph_sentence(results)]
    table = winners_table([one for one in standings(results) if one.setting.delay == "50"] or standings(results))
    return short_body(sentences, table, "Least mean final regret of the policies that are told nothing")


def winners_table(found: list[Standing]) -> pd.DataFrame:
    """One row for each setting: the winner, its regret over that of random sets, and who cannot be told apart."""
    rows = []
    for one in found:
        told = one.told.label if one.told is not None else "–"
        rows.append(
            {
                "setting": one.setting.title,
                "best, told nothing": one.best.label,
                "of random's regret": ratio_text(share_of_random(one.setting, one.best)),
                "cannot be told apart from it": ", ".join(record.label for record in one.ties) or "–",
                "best, told the structure": told,
                "its share of random's": ratio_text(share_of_random(one.setting, one.told)) if one.told else "–",
            }
        )
    return pd.DataFrame(rows)


def winners(results: Results, draw: Draw) -> str:
    note = (
        "<p>In each world at each delay: the policy with the least mean final regret of those that are told nothing of "
        "the graph, chosen in hindsight; those whose paired difference to it has a 95% interval that reaches 0; and "
        "the best of those that are told which edges there can be. Regrets are divided by that of random sets in the "
        "same worlds, with 95% intervals by the delta method.</p>"
    )
    table = html_table(winners_table(standings(results)), text=TEXT)
    body = f'{note}<div class="wide">{table}</div>'
    ratios = [ratio for setting in settings_of(results) if setting.delay == "50" for ratio in ratios_of(setting)]
    if ratios:
        caption = "Final regret divided by that of random sets, with 95% intervals, at D = 50."
        body += draw("field-ratios", ratios_figure(ratios, reference="random sets"), caption)
    return body


TEXT = ("setting", "best, told nothing", "cannot be told apart from it", "best, told the structure", "policy", "rival")


def ratios_of(setting: Setting) -> list[Ratio]:
    found = []
    for name in FIGURED:
        if name in setting.records:
            mean, low, high = (float(v) for v in share_of_random(setting, setting.records[name]))
            found.append(Ratio(WORLDS[setting.world], name, setting.records[name].label, mean, low, high))
    return found


def ours(results: Results) -> str:
    """Switching-SEM and Instrumental-SEM against the best of the others that are told no more."""
    note = (
        "<p>The rival is the best of all others that are told nothing, chosen in hindsight, in its favour. The aim: at "
        "most 1.05 times its regret where the policy's assumptions hold (a linear graph of edges that do not hurt, "
        "means that are constant or jump), at most 1.3 times elsewhere.</p>"
    )
    rows = []
    for name in ("switching-sem", "switching-sem-signed", "instrumental-sem"):
        for one in goals(results, name):
            rows.append(
                {
                    "setting": one.setting.title,
                    "policy": one.ours.label,
                    "rival": one.rival.label,
                    "ratio": ratio_text(one.ratio),
                    "assumptions hold": "yes" if one.assumed else "no",
                    "aim met": "yes" if one.met else "no",
                }
            )
    return f'{note}<div class="wide">{html_table(pd.DataFrame(rows), text=TEXT)}</div>'


def graph(results: Results) -> str:
    """The best policy with a graph against the regression of the payoff, and what it is worth to be told the edges."""
    note = (
        "<p>The regression of the payoff on the decision needs no graph, and sees less: one number a round. If "
        "learning a graph is not worth it, it has less regret than the best policy that learns one. That best policy "
        "is chosen in hindsight, in favour of the graph.</p>"
    )
    said = f"<p><b>{escape(graph_sentence(results))} {escape(structure_sentence(results))}</b></p>"
    tables = []
    for heading, found in (
        ("Learning a graph: its regret over that of the payoff regression", graph_against_payoff(results)),
        ("Being told the edges: the best regret with, over the best without", structure_against_none(results)),
    ):
        rows = [
            {"setting": setting.title, "policy": one.label, "rival": other.label, "ratio": ratio_text(ratio)}
            for setting, one, other, ratio in found
        ]
        if rows:
            tables.append(f'<div class="wide">{html_table(pd.DataFrame(rows), text=TEXT, caption=heading)}</div>')
    return note + said + "".join(tables)


def all_policies(results: Results) -> str:
    """Final regret of every policy in every setting."""
    body = ""
    for world, title in WORLDS.items():
        records = [record for s in settings_of(results) if s.world == world for record in s.records.values()]
        if records:
            body += f'<div class="wide">{html_table(show_final(final_table(records)), caption=title)}</div>'
    return body


def knows(results: Results) -> str:
    """What each policy is told, sees, and does with outcomes that come late."""
    rows = []
    for entry in results.experiment.policies.values():
        of = as_policy(entry.policy("50")).traits
        levels = ((of.needs_world, "the world"), (of.knows_structure, "which edges there can be"))
        told = next((level for known, level in levels if known), "nothing")
        seen = "x, z and y" if of.needs_rewards else "x and y" if of.needs_outcomes else "x and the sum of y"
        order = "by the round of play" if of.order_free else "by the round of play; what comes first counts first"
        rows.append({"policy": entry.label, "is told": told, "needs to see": seen, "late outcomes count": order})
    return html_table(pd.DataFrame(rows), text=("policy", "is told", "needs to see", "late outcomes count"))


def definitions() -> str:
    return (
        "<p>Here regret is the expected payoff of the best set of the round minus that of the set that was played, "
        "summed over rounds. <b>LinSEM, GA-LCB, BLM-LR, Robust:</b> the same for the reward node alone, against the "
        "best intervention; that is the regret in the world with one reward node. Their programs add up drawn payoffs "
        "of both, with the same noise, which has the same mean. <b>CSL-UCB:</b> the cumulative reward; its difference "
        "to the best one's is this regret. <b>Network interference:</b> the mean over units instead of the sum: this "
        "regret divided by 8. <b>Piecewise SEM-UCB, DAL:</b> the same as here, against the best set of each round.</p>"
    )
