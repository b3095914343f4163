"""Nothing of other libraries is loaded before it is used, and a missing one is named with what to install."""

import importlib
import subprocess
import sys

import networkx
import pytest

from spillover import FixedSEM
from spillover.interop.obp import log_from_obp
from spillover.networks import from_networkx, to_networkx

OPTIONAL = ("gymnasium", "networkx", "sklearn", "polars", "pyarrow", "pandas", "openpyxl")


def test_the_core_loads_none_of_them():
    code = "import sys, spillover, spillover.interop, spillover.interop.agents, spillover.interop.estimators; "
    code += "import spillover.interop.obp, spillover.networks; print(sorted(sys.modules.keys() & set(sys.argv[1:])))"
    found = subprocess.run([sys.executable, "-c", code, *OPTIONAL], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["gymnasium", "sklearn"])
def test_a_module_without_its_library_says_what_to_install(monkeypatch, library):
    name = f"spillover.interop.{library}"
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.base", None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'spillover\[{library}\]'"):
        importlib.import_module(name)


@pytest.mark.parametrize("convert", [to_networkx, from_networkx])
def test_networks_say_what_to_install(monkeypatch, convert):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'spillover\[networkx\]'"):
        convert([[0, 1], [0, 0]])


def test_a_world_from_a_network_needs_no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    world = FixedSEM.from_networkx(networkx.DiGraph([("a", "b")]), means={"a": 0.5, "b": 0.2}, budget=1)
    assert world.arms == ("b", "a")
    with pytest.raises(ImportError, match=r"pip install 'spillover\[research\]'"):
        log_from_obp({})
