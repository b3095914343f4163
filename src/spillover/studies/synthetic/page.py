"""The page of the paper's synthetic study: the default page, and the paper's claims and figures."""

from collections.abc import Iterator

from spillover.experiments import Results
from spillover.report.claims import claims_body
from spillover.report.page import Part, overview, provenance
from spillover.report.page import page_parts as general_parts
from spillover.report.sections import Draw
from spillover.studies.synthetic import sections
from spillover.studies.synthetic.claims import all_claims

TITLES = {"fresh": "Regret over fresh worlds", "picture": "Regret in one world, as in the paper's figure"}


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; an incomplete study gets the default page."""
    if not is_complete(results):
        yield from general_parts(results, draw)
        return
    yield from overview(results, draw, TITLES)
    yield "claims", "The paper's claims and our findings", claims_body(all_claims(results))
    yield "adaptation", "Adaptation to changes", sections.adaptation(results, draw)
    yield "graph", "The graph", sections.graph(results, draw)
    yield "delay", "Regret against the delay", sections.against_delay(results, draw)
    yield "ablation", "What each part contributes", sections.ablations(results, draw)
    yield "world", "The world of the figures", sections.picture_world(results, draw)
    yield from provenance(results)


def is_complete(results: Results) -> bool:
    """Whether no part of the study was left out (`Experiment.changed(worlds=...)`): the claims need all of it."""
    return not {"worlds", "delays", "policies"} & set(results.experiment.changes)
