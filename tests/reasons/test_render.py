"""Reasons as text, as a table, as JSON, and from a live learner."""

import json

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive
from spillover.reasons import reasons
from spillover.reasons.render import format_number, format_part, is_visible
from tests.reasons.examples import made_up

CHAIN = [[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]]
NAMES = ["Ål", "bus", "car"]


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_complete():
    found = reasons(made_up(CHAIN, [np.nan, 0.4, 0.6], [1, 0, 1], index=[np.inf, 0.5, 0.7]), arms=NAMES)
    content = strict(found.to_json())
    assert content == found.to_dict()
    assert content["chosen"] == ["Ål", "car"]
    arms = {arm["arm"]: arm for arm in content["arms"]}
    assert arms["Ål"]["score"] is None
    assert arms["Ål"]["known"] is False
    car = arms["car"]
    assert car["direct"] + car["spilled_over"] + car["exploration"] == pytest.approx(car["score"])
    paths = sum(path["amount"] for path in car["paths"])
    rests = sum(car[f"{name}_ways"] for name in ("other", "longer", "unknown"))
    assert paths + rests == pytest.approx(car["spilled_over"])
    assert {(e["from"], e["to"]): e["flow"] for e in content["graph"]["edges"]} == {
        ("bus", "Ål"): pytest.approx(0.15), ("car", "bus"): pytest.approx(0.3)
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in sp.policies.POLICIES if "oracle" not in name])
def test_every_policy_gives_reasons_at_any_time(name):
    problem = sp.Problem(3, 2, overall_range=(0.0, 2.0), weights=np.array([1.0, 1.5, 1.2]))
    learner = sp.Learner(sp.policies.POLICIES[name](), problem)
    for t in range(6):
        found = learner.reasons(NAMES)
        strict(found.to_json())
        assert f"Score: {found.quantity}" in str(found)
        np.testing.assert_array_equal([arm.chosen for arm in found.arms], learner.choose())
        assert list(found.to_frame().columns[:2]) == ["position", "chosen"]
        x = learner.choose()
        played = learner.play()
        if t != 2:
            learner.report(played, z=0.5 * x, y=0.5 * x)
    assert "pending" in {signal.code for signal in learner.reasons().health}


@pytest.mark.parametrize(
    "parts",
    [
        (4.306, 2.836, 0.0609),
        (0.5, 0.0006, -0.0006),
        (0.5, 0.0004, 0.0),
        (-0.0004, 0.2, 0.1),
        (0.0, 0.0, 0.0),
        (4e-4, 3e-4, 2.2e-6),
        (123456.0, 4567.0, 8.0),
    ],
)
def test_printed_parts_add_up_to_the_printed_whole(parts):
    whole = float(format_number(sum(parts)))
    printed = [float(format_part(part, sum(parts))) for part in parts if is_visible(part, sum(parts))]
    size = 1.0 if 1e-3 <= abs(whole) < 1e5 or whole == 0 else 10.0 ** np.floor(np.log10(whole)) * 10
    assert sum(printed) == pytest.approx(whole, abs=2.5e-3 * size)
    assert all(printed)
    assert not any(format_part(part, sum(parts)).startswith("-0.000") for part in parts)


def test_infinite_parts_are_printed():
    parts = format_part(np.inf, np.inf), format_part(0.25, np.inf)
    assert (is_visible(np.inf, np.inf), *parts) == (True, "infinite", "0.250")


def test_the_table_has_a_row_for_each_arm_the_chosen_first():
    table = reasons(made_up(CHAIN, [0.9, 0.4, 0.6], [1, 0, 1]), arms=NAMES).to_frame()
    assert table.index.tolist() == ["car", "Ål", "bus"]
    np.testing.assert_allclose(table[["direct", "spilled_over", "exploration"]].sum(axis=1), table["score"])
    assert table.loc["car", "spills_over_to"] == "car -> bus; car -> bus -> Ål"


def test_of_many_arms_the_text_shows_the_best():
    n = 40
    text = str(reasons(made_up(np.zeros((n, n)), np.linspace(0, 1, n), np.arange(n) > 37)))
    assert "... and 30 more arms with lower scores" in text
    assert "arm 1 " not in text


def test_an_unknown_graph_is_reported_as_unknown():
    shown = made_up(np.full((2, 2), np.nan), [0.5, 0.5], [0, 1], weights=[1.0, 1.8])
    assert "0.400  along unknown paths" in str(reasons(shown))
    partly = made_up([[0, 0.5], [0, 0]], [0.5, 0.5], [0, 1], weights=[1.0, 1.8])
    assert "0.150  not along the paths of the graph" in str(reasons(partly))
    nearly = made_up([[0, 0.5], [0, 0]], [0.5, 0.5], [0, 1], weights=[1.0, 1.5008])
    assert reasons(nearly).arms[1].ways.unknown == pytest.approx(0.0004)
    assert "not along the paths" not in str(reasons(nearly))


def test_under_constraints_no_arm_is_ahead():
    shown = made_up(CHAIN, [0.9, 0.4, 0.6], [1, 0, 1])
    assert "ahead by" in str(reasons(shown, arms=NAMES))
    for options in ({"constraints": (Exclusive([0, 1]),), "budget": 2}, {"feasible": lambda x: True}):
        *_, title, first = str(reasons(shown, arms=NAMES, **options)).splitlines()[:5]
        assert title.endswith("score")
        assert first.split()[-1] == "1.225"


def test_a_learner_keeps_its_delays_on_disk(tmp_path):
    learner = sp.Learner(sp.NDCSEM(), sp.Problem(2, 1))
    for _ in range(4):
        learner.play()
    learner.report(1, z=[0, 0], y=[0, 0])
    learner.report(3, z=[0, 0], y=[0, 0])
    assert learner.delay_totals == (2, 4, 3)
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", sp.NDCSEM(), sp.Problem(2, 1))
    assert again.reasons().to_dict() == learner.reasons().to_dict()
