"""The page of the paper's synthetic study: that of any experiment, and the paper's claims and figures."""

from collections.abc import Iterator

from spillover.experiments import Results
from spillover.report.claims import claims_body
from spillover.report.page import Part, overview, provenance
from spillover.report.page import page_parts as general_parts
from spillover.report.sections import Draw
from spillover.studies.synthetic import sections
from spillover.studies.synthetic.claims import all_claims

TITLES = {"fresh": "Regret over fresh worlds", "picture": "Regret in one world, as in the paper's picture"}


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; a part of the study gets the page of any experiment."""
    if not is_whole(results):
        yield from general_parts(results, draw)
        return
    yield from overview(results, draw, TITLES)
    yield "claims", "What the paper claims, what we find", claims_body(all_claims(results))
    yield "adaptation", "Adaptation to changes", sections.adaptation(results, draw)
    yield "graph", "The graph", sections.graph(results, draw)
    yield "delay", "Regret against the delay", sections.against_delay(results, draw)
    yield "ablation", "What each part brings", sections.ablations(results, draw)
    yield "world", "The world of the pictures", sections.picture_world(results, draw)
    yield from provenance(results)


def is_whole(results: Results) -> bool:
    """Whether nothing of the study was left out (`Experiment.changed(worlds=...)`): the claims need all of it."""
    return not {"worlds", "delays", "policies"} & set(results.experiment.changes)
