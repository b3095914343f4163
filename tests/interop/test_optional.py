"""Nothing of other libraries is loaded before it is used, and a missing one is named with what to install."""

import importlib
import subprocess
import sys

import pytest

from spillover.tabular import from_networkx, to_networkx

OPTIONAL = ("gymnasium", "networkx", "sklearn", "polars", "pyarrow", "pandas", "openpyxl")


def test_the_core_loads_none_of_them():
    code = "import sys, spillover, spillover.interop, spillover.interop.agents; "
    code += "import spillover.interop.obp, spillover.tabular; print(sorted(sys.modules.keys() & set(sys.argv[1:])))"
    found = subprocess.run([sys.executable, "-c", code, *OPTIONAL], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["gymnasium", "sklearn"])
def test_a_module_without_its_library_says_what_to_install(monkeypatch, library):
    name = f"spillover.interop.{library}"
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.base", None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=rf'pip install "spillover\[{library}\]"'):
        importlib.import_module(name)


@pytest.mark.parametrize("convert", [to_networkx, from_networkx])
def test_networks_say_what_to_install(monkeypatch, convert):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r'pip install "spillover\[networkx\]"'):
        convert([[0, 1], [0, 0]])


WITHOUT_PANDAS = """
import sys
class Missing:  # a None in sys.modules confuses compiled code
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.meta_path.insert(0, Missing())
import networkx, polars, spillover as sp
from spillover.interop.obp import log_from_obp
network = networkx.DiGraph([("a", "b")])
print(sp.FixedSEM.from_networkx(network, means={"a": 0.5, "b": 0.2}, budget=1).arms)
print(sp.FixedSEM(adjacency=polars.DataFrame({"a": [0, 1], "b": [0, 0]}), means=[0.5, 0.2], budget=1).arms)
try:
    log_from_obp({})
except ImportError as error:
    print(error)
"""


def test_tables_and_networks_need_no_pandas():
    found = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=True)
    one, other, message = found.stdout.splitlines()
    assert one == other == "('b', 'a')"
    assert message.endswith('(pandas): pip install "spillover[research]"')
