"""The report of a small copy of the shipped study: everything is there, and stands on its own."""

import re
from dataclasses import replace

import numpy as np
import pytest

from spillover.experiments import parse_experiment, run_experiment
from spillover.studies import load_experiment, write_report
from spillover.studies.synthetic.claims import all_claims, change_jump, regret_order

SHORT = "horizon = 400\nchanges = [100, 200, 300]\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The shipped file with short worlds, few replications and shorter delays under the same names."""
    text = load_experiment("synthetic").text
    text = text.replace('kind = "synthetic"\n', f'kind = "synthetic"\n{SHORT}')
    text = text.replace('kind = "instance"\n', f'kind = "instance"\n{SHORT}')
    text = text.replace("replications = 100", "replications = 3").replace("replications = 20", "replications = 2")
    text = re.sub(r"rounds = (\d+)", lambda found: f"rounds = {int(found[1]) // 10}", text)
    text = re.sub(r"mean = (\d+)", lambda found: f"mean = {int(found[1]) // 10}", text)
    small = replace(parse_experiment(text), study="synthetic")
    return run_experiment(small, tmp_path_factory.mktemp("study"), progress=False)


@pytest.fixture(scope="module")
def page(results, quick_figures):
    return write_report(results.store.folder)


def test_every_section_and_figure_is_there(page):
    text = page.read_text()
    for anchor in ("summary", "regret-fresh", "regret-picture", "table", "claims", "adaptation", "graph", "delay"):
        assert f'id="{anchor}"' in text
        assert f'href="#{anchor}"' in text
    names = {path.stem for path in (page.parent / "figures").iterdir()}
    assert {"regret-fresh", "graph-learned", "means", "optimality-ratio", "ablation-50"} <= names
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


def test_claims_are_what_the_results_say(results):
    claims = all_claims(results)
    assert len(claims) >= 18
    assert {c.verdict for c in claims} <= {"holds", "does not hold", "not decided"}
    ours, rival = (results.record("fresh", "50", name).regret[:, -1].mean() for name in ("ndc-sem", "random"))
    first = next(iter(regret_order(results)))
    assert f"NDC-SEM {ours:,.0f} [" in first.finding
    assert ours < rival  # or the study itself is broken


def test_the_jump_at_a_change_is_a_difference_of_slopes(results):
    record = results.record("fresh", "50", "random")._replace(
        rounds=np.array([100, 200, 300, 400]), regret=np.array([[100.0, 300.0, 400.0, 420.0]])
    )
    # regret a round: 1 until 100, 2 until 200, 1 until 300, 0.2 at last
    np.testing.assert_allclose(change_jump(record), ((2 - 1) + (1 - 2) + (0.2 - 1)) / 3)
