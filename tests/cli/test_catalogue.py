"""policies and bound: what they print is what the classes and the theory say."""

import json

import pytest

import spillover as sp
from spillover.policies import POLICIES
from spillover.theory import world_constants
from tests.cli.calls import call, refused


def test_every_policy_is_listed_with_its_class() -> None:
    text = call("policies").stdout
    for name, made in POLICIES.items():
        kind = getattr(made, "func", made)
        assert f"{name} ({kind.__name__}): {(kind.__doc__ or '').splitlines()[0]}\n" in text


def test_the_listing_as_json_has_parameters_that_make_the_policy() -> None:
    listed = json.loads(call("policies", "--json").stdout)
    assert [each["name"] for each in listed] == list(POLICIES)
    for each in listed:
        given = {p["name"]: p["default"] for p in each["parameters"]}
        assert type(POLICIES[each["name"]](**given)).__name__ == each["class"]
        assert each["description"]
        assert each["source"]
    told = next(each for each in listed if each["name"] == "cucb-known-graph")
    assert {k: told["parameters"][0][k] for k in ("name", "default")} == {"name": "knows_graph", "default": True}


def test_what_a_reference_point_is_told_is_no_parameter() -> None:
    assert json.loads(call("policies", "oracle", "--json").stdout)["parameters"] == []


def test_one_policy_in_full() -> None:
    text = call("policies", "ndc-sem").stdout
    assert "NDC-SEM (Algorithm 1)" in text
    assert "gamma, in (0, 1)" in text
    assert ">>>" not in text
    content = json.loads(call("policies", "ndc-sem", "--json").stdout)
    notes = {p["name"]: p["note"] for p in content["parameters"]}
    assert notes["exploration"].startswith("xi >= 0")
    assert notes["discount"].endswith("how often idle arms are tried again.")
    parts = {p["name"]: p for p in content["parts"]}
    assert parts["graph.sparsity"]["default"] == 1e-3
    assert parts["graph.required"]["note"] == parts["graph.forbidden"]["note"] != ""
    assert "graph.row_bound" in text


def test_a_misspelt_policy_is_corrected() -> None:
    refused(call("policies", "ndcsem"), "policy = 'ndcsem'", "did you mean ndc-sem?", "must be one of")


def test_the_bound_is_that_of_the_library() -> None:
    constants = world_constants(sp.SyntheticSEM().draw(sp.Rng(7)))
    expected = sp.theory.regret_bound(constants, discount=0.99, exploration=0.2, delay=200)
    arguments = ["bound", "--seed", 7, "--discount", 0.99, "--exploration", 0.2, "--delay", 200]
    assert call(*arguments).stdout == f"{expected}\n"
    content = json.loads(call(*arguments, "--json").stdout)
    assert content["corrected"] == expected.corrected
    assert content["constants"] == constants._asdict()
    assert (content["vacuous"], content["delay"]) == (True, 200)


def test_constants_that_are_given_replace_the_worlds() -> None:
    content = json.loads(call("bound", "--smallest-gap", 0.5, "--horizon", 100, "--changes", 0, "--json").stdout)
    assert (content["constants"]["horizon"], content["constants"]["smallest_gap"]) == (100, 0.5)
    assert content["change_term"] == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--exploration", "1e-10"], "exploration = 1e-10: must be a number above 1 / (2 (s + 1)) = 0.1"),
        (["--discount", "1"], "discount = 1.0: must be a number strictly between 0 and 1"),
        (["--delay", "-1"], "-1"),
        (["--delay", "soon"], "'soon' is not a valid integer"),
        (["--budget", "11"], "budget = 11"),
        (["--seed", "-1"], "seed = -1"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(arguments, part) -> None:
    refused(call("bound", *arguments), part)
