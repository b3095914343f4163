"""The page of the paper's synthetic study: what to take away, the claims, the paper's figures, and how it was tuned."""

from collections.abc import Iterator

from spillover.experiments import Results
from spillover.report import page as default
from spillover.report.claims import claims_body
from spillover.report.page import Draw, Part
from spillover_studies.synthetic import sections, tuned
from spillover_studies.synthetic.claims import all_claims
from spillover_studies.synthetic.numbers import in_short

TITLES = {"fresh": "Regret over fresh worlds", "picture": "Regret in one world, as in the paper's figure"}


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; an incomplete study gets the default page."""
    if not is_complete(results):
        yield from default.page_parts(results, draw)
        return
    claims = all_claims(results)
    yield "short", "In short", in_short(results, claims)
    yield "model", "The model (the paper's Fig. 1)", sections.model(draw)
    yield "claims", "The paper's claims and our findings", claims_body(claims)
    yield "regret-fresh", TITLES["fresh"], sections.regret(results, "fresh", draw)
    yield "regret-picture", "One world, as in the paper's figures", sections.one_world(results, draw)
    yield "counts", "In how many worlds each statement holds", sections.counts(results)
    yield "tuning", "Tuning", tuned.tuning(results, draw)
    yield "table", "Final regret", sections.final_regret_tables(results, TITLES)
    yield "payoff", "Average payoff and computing time", sections.payoffs(results)
    yield "adaptation", "Adaptation to changes", sections.adaptation(results, draw)
    yield "graph", "The graph", sections.graph(results, draw)
    yield "delay", "Regret against the delay", sections.against_delay(results, draw)
    yield "ablation", "What each part contributes", sections.ablations(results, draw)
    yield "world", "The world of the figures", sections.picture_world(results, draw)
    yield "parameters", "Parameters", sections.parameters(results)
    yield "settings", "Settings, seeds, versions", default.settings(results)


def is_complete(results: Results) -> bool:
    """Whether no part of the study was left out (`Experiment.changed(worlds=...)`): the claims need all of it."""
    return not {"worlds", "delays", "policies"} & set(results.experiment.changes)
