"""Parts by name: built in, of an installed package, or module:Class of one's own; each kind by the same rule."""

import sys
from functools import partial

import pytest

import spillover as sp
from spillover import registry
from spillover.cli import COMMANDS
from spillover.delays import DELAYS
from spillover.environments import ENVIRONMENTS
from spillover.experiments import parse_experiment
from spillover.graph import GRAPHS
from spillover.policies import POLICIES
from spillover.registry import Registry
from spillover.studies import STUDIES, find_study
from tests.cli.calls import call

REGISTRIES = (POLICIES, GRAPHS, ENVIRONMENTS, DELAYS, STUDIES, COMMANDS)
OWN = """
from dataclasses import dataclass
from functools import partial
import click
import spillover as sp
from spillover_studies.beyond import BeyondStudy

class MyPolicy(sp.NDCSEM): pass
class MyGraph(sp.SparseGraph): pass
class MyEnvironment(sp.SyntheticSEM): pass
class MyDelay(sp.ConstantDelay): pass
class MyStudy(BeyondStudy): name = "mine"
made = partial(MyPolicy, discount=0.5)
number = 3
@click.command()
def greet():
    "Say hello."
    click.echo("hello")
"""
ENTRY_POINTS = """
[spillover.policies]
my-policy = my_own_parts:MyPolicy
half = my_own_parts:made
ndc-sem = my_own_parts:MyPolicy
[spillover.graphs]
my-graph = my_own_parts:MyGraph
[spillover.environments]
my-environment = my_own_parts:MyEnvironment
[spillover.delays]
my-delay = my_own_parts:MyDelay
broken = my_own_parts:Nothing
[spillover.studies]
my-study = my_own_parts:MyStudy
[spillover.commands]
greet = my_own_parts:greet
licensed = needs_a_licence:command
"""
LICENSED = "raise RuntimeError('no licence')"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module in the current folder, which is not on the path yet."""
    (tmp_path / "my_own_parts.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_own_parts", None)


@pytest.fixture
def installed(own, monkeypatch):
    """The same as a package that is installed."""
    folder = own / "my_own_parts-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: my-own-parts\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    (own / "needs_a_licence.py").write_text(LICENSED)
    monkeypatch.syspath_prepend(own)
    registry.entry_points_of.cache_clear()
    yield own
    registry.entry_points_of.cache_clear()


def test_the_groups_of_entry_points():
    assert [each.group for each in REGISTRIES] == [
        f"spillover.{kind}" for kind in ("policies", "graphs", "environments", "delays", "studies", "commands")
    ]


@pytest.mark.parametrize("kinds", REGISTRIES, ids=lambda kinds: kinds.what)
def test_a_class_of_ones_own_is_found(kinds, own):
    name = "greet" if kinds is COMMANDS else f"My{kinds.what.capitalize()}"
    assert kinds.is_name(f"my_own_parts:{name}")
    assert kinds.find(f"my_own_parts:{name}").__module__ in ("my_own_parts", "click.core")


@pytest.mark.parametrize("kinds", REGISTRIES, ids=lambda kinds: kinds.what)
def test_an_installed_part_is_found(kinds, installed):
    name = "greet" if kinds is COMMANDS else f"my-{kinds.what}"
    assert kinds.is_name(name)
    assert name in kinds.names()
    assert name not in kinds
    assert kinds.find(name) is kinds.find(f"my_own_parts:{'greet' if kinds is COMMANDS else kinds.find(name).__name__}")


def test_installed_parts_are_used(installed):
    text = """
        name = "mine"
        worlds.w = { kind = "my-environment", horizon = 20, changes = [] }
        delays.d = { kind = "my-delay", rounds = 2 }
        policies.p = { kind = "my-policy", graph = { kind = "my-graph", sparsity = 0.1 } }
    """
    experiment = parse_experiment(text)
    found = [type(experiment.worlds["w"]), type(experiment.delays["d"]), type(experiment.policies["p"].policy())]
    assert [kind.__name__ for kind in found] == ["MyEnvironment", "MyDelay", "MyPolicy"]
    assert experiment.policies["p"].policy().graph.sparsity == 0.1
    assert find_study("my-study").name == "mine"
    assert call("greet").stdout == "hello\n"
    assert "\n  greet " in call("--help").stdout
    assert "my-policy (MyPolicy)" in call("policies").stdout


def test_a_built_in_name_goes_before_an_installed_one(installed):
    assert POLICIES.find("ndc-sem") is sp.NDCSEM
    assert POLICIES.names().count("ndc-sem") == 1


def test_a_partial_of_a_class_will_do(installed):
    found = POLICIES.find("half")
    assert isinstance(found, partial)
    assert found().discount == 0.5


def test_installed_packages_are_asked_only_for_names_that_are_not_built_in(monkeypatch):
    def fail(group):
        raise AssertionError(f"looked for {group}")

    monkeypatch.setattr(registry, "entry_points_of", fail)
    for kinds in REGISTRIES:
        for name in kinds:
            assert kinds.is_name(name)
            assert kinds.find(name) is kinds[name]
    assert call("next", "--help").exit_code == 0
    with pytest.raises(AssertionError, match=r"looked for spillover\.policies"):
        POLICIES.is_name("ndcsem")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcsem", r"^policy = 'ndcsem': must be one of switching-sem, .* or module:Class; did you mean ndc-sem\?$"),
        (3, "^policy = 3: must be one of switching-sem, "),
        (
            "no_such_module:X",
            "a module that imports: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("my_own_parts:Nothing", "must name a class in my_own_parts, which has no 'Nothing'"),
        ("my_own_parts:number", r"must name a policy, not 3"),
        ("my_own_parts:MyDelay", r"must name a policy, not <class 'my_own_parts.MyDelay'>"),
        (":", "must be module:Class of a module that imports"),
    ],
)
def test_what_is_no_part_is_refused(name, message, own):
    with pytest.raises(ValueError, match=message):
        POLICIES.find(name)


def test_an_entry_point_that_does_not_load_is_reported(installed):
    with pytest.raises(ValueError, match=r"delay = 'broken': must be an entry point that loads.*Nothing"):
        DELAYS.find("broken")
    notes: list[str] = []
    assert "broken" not in DELAYS.loadable(notes.append)
    assert len(notes) == 1
    assert "broken" in notes[0]
    shown = call("--help")
    assert shown.exit_code == 0
    assert "greet" in shown.stdout
    assert "licensed" not in shown.stdout
    assert "RuntimeError: no licence" in shown.stderr


@pytest.mark.parametrize("text", ["class X(:", "undefined", "raise OSError('gone')"])
def test_an_error_in_ones_own_file_names_the_part(text, own):
    (own / "half_written.py").write_text(text)
    with pytest.raises(ValueError, match=r"policy = 'half_written:X': must be module:Class of a module that imports"):
        POLICIES.find("half_written:X")


def test_a_misspelt_class_is_suggested(own):
    with pytest.raises(ValueError, match=r"which has no 'MyPolice'; did you mean MyPolicy\?"):
        POLICIES.find("my_own_parts:MyPolice")


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("worlds.w", 'worlds.w = { kind = "my_own_parts:MyGraph" }'),
        ("delays.d", 'delays.d = { kind = "my_own_parts:number" }'),
        ("policies.p", 'policies.p = { kind = "my_own_parts:MyGraph" }'),
        ("policies.p", 'policies.p = { kind = "ndc-sem", graph = { kind = "my_own_parts:MyPolicy" } }'),
    ],
)
def test_a_file_says_where_a_wrong_kind_stands(key, line, own):
    lines = {
        "worlds.w": 'worlds.w = { kind = "synthetic" }',
        "delays.d": 'delays.d = { kind = "constant", rounds = 2 }',
        "policies.p": "policies.cts = {}",
    }
    text = "\n".join(['name = "mine"', *(lines | {key: line}).values()])
    where = list(lines).index(key) + 2
    with pytest.raises(ValueError, match=rf"^mine.toml:{where}: kind = 'my_own_parts:\w+': must name a"):
        parse_experiment(text, "mine.toml")


def test_a_mapping_of_the_built_in_parts():
    kinds = Registry("table", "example.tables", dict, {"plain": dict})
    assert (list(kinds), len(kinds), kinds["plain"], "x:y" in kinds) == (["plain"], 1, dict, False)
