"""The study beyond the paper: a small copy of the shipped file, its page, and ratios that are known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from spillover.experiments import parse_experiment, run_experiment
from spillover.metrics import Interval
from spillover.report import figures
from spillover.studies import load_experiment, write_report
from spillover.studies.beyond import claims as beyond_claims
from spillover.studies.beyond import families as beyond
from tests.report.examples import made_up, ratios


def small():
    """The shipped file with short worlds, few replications and shorter delays under the same names."""
    text = load_experiment("beyond").text
    short = 'kind = "synthetic"\nhorizon = 150\n'
    text = text.replace('kind = "synthetic"\n', short + "changes = [50, 100]\n").replace("n_arms = 50", "n_arms = 20")
    text = text.replace("changes = [50, 100]\nchanges = []", "changes = []")
    text = text.replace("replications = 25", "replications = 3").replace("replications = 10", "replications = 2")
    text = re.sub(r"(rounds|mean) = (\d+)", lambda found: f"{found[1]} = {int(found[2]) // 10}", text)
    return replace(parse_experiment(text), study="beyond")


@pytest.fixture(scope="module")
def results(tmp_path_factory, quick_figures):
    return run_experiment(small(), tmp_path_factory.mktemp("beyond"), progress=False)


def test_the_families_are_those_of_the_shipped_file():
    """Every combination of the file has a name in the report, and is told in words that fit it."""
    experiment = load_experiment("beyond")
    named = {(family.world, family.delay) for family in beyond.MAIN + beyond.VARIED}
    assert {key[:2] for key in experiment.combinations()} == named
    assert {key[2] for key in experiment.combinations()} >= {beyond.OURS, *beyond.PAPERS, beyond.REFERENCE}
    large = experiment.worlds["large"]
    assert (large.n_arms, large.budget, large.edges) == (50, 10, 40)  # type: ignore[attr-defined]
    paper, same = (load_experiment(name).policies["ndc-sem"] for name in ("synthetic", "beyond"))
    for delay in ("50", "200", "400"):
        assert same.policy(delay) == paper.policy(delay)


def test_the_page_has_it_all(results):
    page = write_report(results.store.folder)
    text = page.read_text()
    for anchor in ("summary", "beyond", "regret", "varied", "claims", "parameters", "settings"):
        assert f'id="{anchor}"' in text
    assert {path.stem for path in (page.parent / "figures").iterdir()} == {"beyond-ratios", "beyond-regret"}
    for family in beyond.VARIED:
        assert family.title in text
    assert "the paper claims" not in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)


def test_every_claim_has_an_interval_and_a_verdict_that_follows_from_it(results):
    claims = beyond_claims.beyond_claims(results)
    assert len(claims) == 6 + 2 * 6 + 8
    assert all(re.search(r"\d \[.*, .*\]", claim.finding) for claim in claims)
    for claim in claims:
        if found := re.search(r"ratio [\d.]+ \[(−?[\d.]+), ([\d.]+)\]", claim.finding):
            low, high = (float(end.replace("−", "-")) for end in found.groups())
            expected = "holds" if high < 1 else "does not hold" if low > 1 else "not decided"
            if min(abs(low - 1), abs(high - 1)) > 0.006:  # not within what was rounded off
                assert claim.verdict == expected


def test_ratios_are_those_of_the_means(results):
    found = {(r.row, r.policy): r for r in beyond.oracle_ratios(results, beyond.MAIN)}
    assert len(found) == 6 * 5
    own, reference = (results.record("all", "200", name).regret[:, -1] for name in ("ndc-sem", "delayed-oracle"))
    ratio = found["all means change, D = 200", "ndc-sem"]
    assert ratio.mean == pytest.approx(own.mean() / reference.mean())
    assert ratio.low < ratio.mean < ratio.high


def test_the_better_of_the_papers_two_is_the_one_with_less_regret():
    good, bad = made_up("ndc-sem"), made_up("sem-ucb")
    assert good.regret[:, -1].mean() < bad.regret[:, -1].mean()
    ours = made_up("cucb")._replace(policy=beyond.OURS, regret=0.5 * good.regret)
    found = beyond.against_the_better({"ndc-sem": good, "sem-ucb": bad, beyond.OURS: ours})
    assert found is not None
    assert found[1] is good
    np.testing.assert_allclose(found[0], 0.5)  # exactly one half in every world: no doubt at all
    assert beyond_claims.below_one(found[0]) == "holds"
    assert beyond.against_the_better({"ndc-sem": good}) is None


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.8, 0.99, "holds"), (0.9, 1.1, "not decided"), (1.01, 2.0, "does not hold")]
)
def test_a_ratio_counts_when_its_interval_leaves_out_1(low, high, verdict):
    assert beyond_claims.below_one(Interval(*map(np.array, (1.0, low, high)))) == verdict


def test_a_part_of_the_study_has_its_page_too(tmp_path):
    run_experiment(small().changed(worlds=["none"], policies=["sem-ucb", "delayed-oracle"]), tmp_path, progress=False)
    assert "nothing changes" in write_report(tmp_path).read_text()


def test_the_figure_shows_every_ratio_and_refuses_none_at_all():
    ax = figures.ratios_figure(ratios())
    assert [text.get_text().replace("\n", " ") for text in ax.get_yticklabels()] == list(
        dict.fromkeys(r.row for r in ratios())
    )
    drawn = sorted(float(x) for container in ax.containers for x in container.lines[0].get_xdata())  # type: ignore[attr-defined]
    np.testing.assert_allclose(drawn, sorted(r.mean for r in ratios()))
    with pytest.raises(ValueError, match=r"ratios = .*: must be at least one that is a number above 0"):
        figures.ratios_figure([ratios()[0]._replace(mean=float("nan"))])
