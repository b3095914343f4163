"""The report of a small copy of the shipped study: everything is there, and stands on its own."""

import re
from pathlib import Path

import pandas as pd
import pytest

from spillover.report.claims import DEPENDS, FAILS, HOLDS, OPEN
from spillover.studies import STUDIES, Request, write_report
from spillover_studies.synthetic import SyntheticStudy
from spillover_studies.synthetic.claims import PARTS, all_claims
from spillover_studies.synthetic.numbers import in_short
from tests.studies.synthetic.searches import write_searches


@pytest.fixture(scope="module")
def page(results, quick_figures):
    write_searches(results.store.folder)
    return write_report(results.store.folder)


def test_every_section_and_figure_is_there(page):
    text = page.read_text()
    anchors = re.findall(r'<section id="([^"]*)"', text)
    assert anchors[:3] == ["short", "model", "claims"]
    expected = {"regret-fresh", "regret-picture", "counts", "tuning", "table", "payoff", "adaptation", "graph", "delay"}
    assert expected <= set(anchors)
    assert all(f'href="#{anchor}"' in text for anchor in anchors)
    names = {path.stem for path in (page.parent / "figures").iterdir()}
    papers = {"example-graph", "regret-picture", "optimality-ratio-picture", "means"}  # the figures that the paper has
    assert papers | {"regret-fresh", "optimality-ratio", "sensitivity", "graph-learned", "ablation"} <= names
    assert {path.suffix for path in (page.parent / "figures").iterdir()} == {".png", ".svg", ".pdf"}
    assert text.count("<img ") == len(names)


def test_it_opens_offline(page):
    """Nothing is loaded from elsewhere, every picture has words, and nothing of a template is left."""
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "<script" not in text
    assert all('alt="' in image for image in re.findall(r"<img [^>]*>", text))
    assert "{{" not in text
    assert "{%" not in text


def test_it_says_in_short_what_to_take_away(results):
    text = in_short(results, all_claims(results))
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", re.sub(r"<[^>]*>", "", text.partition("</p>")[0]))
    assert "tuned for each delay" in sentences[0]
    assert "printed" in sentences[-3]
    assert "once" in sentences[-2]
    assert "over many worlds, " in sentences[-1]
    assert f"of {len(PARTS)} claims" in sentences[-1]
    assert len(sentences) in (4, 5)  # one more where a tuned SEM-UCB is not beaten
    ours = results.record("fresh", "50", "ndc-sem-tuned").regret[:, -1].mean()
    assert f"{ours:,.0f} [" in re.sub(r"<[^>]*>", "", text)


def test_every_claim_appears_once_with_a_verdict(results):
    claims = all_claims(results)
    assert len(claims) == len(PARTS)
    assert len({claim.claim for claim in claims}) == len(claims)
    verdicts = {v for c in claims for v in (c.verdict, c.one)}
    verdicts |= {v for c in claims for row in c.variants for v in (row.verdict, row.one)}
    assert verdicts <= {HOLDS, FAILS, OPEN, DEPENDS, ""}
    assert all(claim.verdict for claim in claims)
    assert sum(bool(claim.one) for claim in claims) == 10  # the others are about no instance
    assert all(claim.bar for claim in claims)
    assert all(claim.claim[0] == "“" and claim.claim[-1] == "”" for claim in claims)


def test_without_searches_the_page_says_so(results, quick_figures, tmp_path):
    from spillover.report.page import Illustrator
    from spillover_studies.synthetic.tuned import tuning

    results.store.folder, kept = tmp_path, results.store.folder
    try:
        assert "The searches were not run" in tuning(results, Illustrator(tmp_path))
    finally:
        results.store.folder = kept


@pytest.mark.parametrize(
    ("request_options", "searched"), [({}, True), ({"quick": True}, False), ({"replications": 3}, False)]
)
def test_only_a_full_run_searches_first(request_options, searched, monkeypatch, tmp_path):
    asked: list[Path] = []
    monkeypatch.setattr(SyntheticStudy, "search", lambda self, request: asked.append(request.output))
    monkeypatch.setattr("spillover.study.run_experiment", lambda *args, **kwargs: NoResults())
    found = STUDIES["synthetic"].prepare(Request(output=tmp_path, page=False, **request_options))()
    assert bool(asked) == searched
    assert found["seconds"] >= 0


class NoResults:
    def final(self) -> pd.DataFrame:
        return pd.DataFrame({"world": [], "delay": [], "policy": [], "final_regret": [], "label": []})
