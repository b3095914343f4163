"""Every result has a short text, a table that can be read and trusted, and a figure."""

import re
from html.parser import HTMLParser
from pkgutil import resolve_name
from typing import get_args

import numpy as np
import pytest

import spillover as sp
from spillover.formatting import Shown
from spillover.views import MOST_ROWS
from tests.views.objects import HOSTILE, WORLD, answer, everything, learner, results, run, tuned

FIGURES = ("run", "grid", "comparison", "learner", "reasons", "answer", "tuned", "results")
PLAIN = {"div", "p", "br", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return everything(tmp_path_factory.mktemp("results"))


class Page(HTMLParser):
    """The tags, attributes and text of a piece of HTML; every tag must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.rows, self.words, self.open = 0, "", list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.rows += tag == "tr"
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def test_texts_are_short(shown) -> None:
    for name, result in shown.items():
        lines = repr(result).splitlines()
        assert len(lines) <= 10, name
        assert max(map(len, lines)) <= 100 or name == "problem", name


def test_tables_hold_plain_tags_only_and_every_name_as_text(shown) -> None:
    for name, result in shown.items():
        page = Page(result._repr_html_())
        assert set(page.tags) <= PLAIN, name
        assert page.attributes <= {"style", "scope", "class"}, name
        assert page.open == []
        assert len(result._repr_html_()) < 8000, name
    words = Page(shown["learner"]._repr_html_()).words
    assert HOSTILE[0] in words
    assert "a & b\\u202e" in words
    assert "line\\nbreak" in words
    assert "\u202e" not in repr(shown["reasons"]) + shown["answer"]._repr_html_()


def test_tables_have_no_colours_of_their_own_and_nothing_from_outside(shown) -> None:
    for result in shown.values():
        assert not re.search(r"color|background|https?:|url\(|<style|<link", result._repr_html_())


def test_long_tables_say_what_is_left_out() -> None:
    many = learner(tuple(f"arm {k}" for k in range(30)))
    page = Page(many._repr_html_())
    assert page.rows == MOST_ROWS + 1  # with the headings
    assert "… 18 more arms" in page.words


def test_figures_show_themselves_without_pyplot(shown) -> None:
    figures = {name: shown[name].plot() for name in FIGURES}
    assert all(len(figure.axes) > 0 for figure in figures.values())
    data, size = figures["run"]._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size["width"] == round(96 * figures["run"].get_figwidth())


def test_the_text_of_a_run_has_its_numbers() -> None:
    mean, low, high = (float(value) for value in run().interval("final_regret"))
    found = re.search(r"final regret (\S+) \[(\S+), (\S+)\]\)$", repr(run()).replace("−", "-"))
    assert found is not None
    assert [float(number) for number in found.groups()] == pytest.approx([mean, low, high], abs=0.06)
    assert repr(run()).startswith("Run(NDCSEM, 3 replications x 60 rounds, delay 5, ")
    assert "[" not in repr(run(replications=1))  # one replication has no interval


def test_a_random_delay_is_shown_with_its_parameters() -> None:
    late = sp.simulate(sp.Uniform(), WORLD, sp.UniformDelay(1, 3), replications=1)
    assert "UniformDelay(" in repr(late)


def test_a_run_of_many_settings_has_no_figure() -> None:
    many = sp.simulate(sp.NDCSEM(discount=np.linspace(0.5, 0.9, 13)), WORLD, replications=1)
    with pytest.raises(ValueError, match="settings of the grid = 13: must be at most 12"):
        many.plot()


def test_a_problem_is_short_to_read_and_whole_where_it_identifies() -> None:
    """Saved learners are recognised by the whole text, which must never change."""
    problem = sp.Problem(n_arms=3, budget=2, acyclic=True)
    assert repr(problem) == "Problem(n_arms=3, budget=2, acyclic=True)"
    assert problem.in_full() == (
        "Problem(n_arms=3, budget=2, acyclic=True, reward_range=(0.0, 1.0), overall_range=None, weights=None, "
        "observes='both', context=0, baseline=False)"
    )
    assert repr(sp.Problem(n_arms=3, budget=2, weights=np.ones(3))).startswith("Problem(n_arms=3, budget=2, weights=")


def test_minimised_outcomes_are_told(shown) -> None:
    assert "positive effects are reductions" in shown["minimised"]._repr_html_()
    assert "positive effects are reductions" not in answer()._repr_html_()


def test_a_learner_that_cannot_decide_yet_is_shown_all_the_same() -> None:
    problem = sp.Problem(n_arms=3, budget=2, observes="overall", context=2, baseline=True)
    waiting = sp.Learner(sp.InstrumentalSEM(), problem)
    assert "No decision yet: context = None" in waiting._repr_html_()
    silent = sp.Learner(sp.policies.FTRL(), sp.Problem(n_arms=3, budget=2, overall_range=(0, 2)))
    assert repr(silent) == "Learner(FTRL, at most 2 of 3 arms, 0 rounds, 0 pending)"


def test_showing_a_learner_changes_nothing() -> None:
    made = sp.Learner(sp.SwitchingSEM(), sp.Problem(n_arms=3, budget=2), seed=3)
    made.choose(available=[0, 2])
    before = made.__getstate__()
    made._repr_html_()
    repr(made)
    after = made.__getstate__()
    assert {key: repr(value) for key, value in before.items()} == {key: repr(value) for key, value in after.items()}


def test_results_that_are_not_computed_are_named(tmp_path) -> None:
    stored = results(tmp_path)
    for cell in stored.cell_ids[("calm", "late", "random")]:
        stored.store.path(cell).unlink()
    stored.loaded.clear()
    assert "not computed" in stored._repr_html_()
    with pytest.raises(ValueError, match="world = 'stormy': must be one of calm"):
        stored.plot("stormy")


def test_the_tuned_policy_is_that_of_the_best_cell() -> None:
    best = tuned().best().iloc[0]
    policy = tuned().policy
    assert (policy.discount, policy.exploration) == (best["discount"], best["exploration"])
    assert list(tuned().policies.values()) == [policy]
    assert isinstance(tuned().policy.discount, float)


def test_every_view_exists_and_shows_its_own_kind() -> None:
    import spillover.experiments.tune  # noqa: F401  (defines a result)

    kinds = Shown.__subclasses__()
    assert {kind.__name__ for kind in kinds} >= {"Run", "Learner", "Learners", "Reasons", "Recommendation", "Tuned"}
    for kind in kinds:
        (base,) = resolve_name(kind.view).__orig_bases__
        assert get_args(base) == (kind,)
