"""Every public name has a docstring with an example that runs, and a place in the reference."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import spillover

ROOT = Path(__file__).parent.parent
TOP = [name for name in spillover.__all__ if isinstance(getattr(spillover, name), ModuleType)]
FURTHER = (
    "assessment",
    "client",
    "core",
    "evaluation",
    "experiments",
    "history",
    "reasons",
    "recommendation",
    "report",
    "service",
    "testing",
)
NAMESPACES = ("spillover", *(f"spillover.{name}" for name in (*TOP, *FURTHER, "figures")))


def public_names(namespace: str) -> dict[str, object]:
    """The classes and functions of a namespace; constants explain themselves where they are defined."""
    module = importlib.import_module(namespace)
    listed = dir(module) if module is spillover else module.__all__  # at the top, there are more names than in __all__
    found = {name: getattr(module, name) for name in listed if not name.startswith("_")}
    parts = {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isroutine(value)}
    return {name: value for name, value in parts.items() if value.__module__.startswith("spillover")}


def is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def own_docstring(value: object) -> str:
    """Its docstring, not that of a class it derives from, and not the one that dataclasses and tuples make up."""
    found = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    made_up = found is None or (inspect.isclass(value) and found.startswith(f"{value.__name__}("))
    return "" if made_up else str(found)


def test_a_name_is_loaded_when_it_is_first_used() -> None:
    code = (
        "import sys, spillover; print('numpy' in sys.modules, spillover.Problem(2, 1).budget, 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False 1 True\n"


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_name_has_an_example(namespace) -> None:
    names = public_names(namespace)
    assert names
    assert [name for name, value in names.items() if not own_docstring(value)] == []
    assert [name for name, value in names.items() if not is_error(value) and ">>> " not in own_docstring(value)] == []


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    shown = set(re.findall(r"^::: (\S+)$", pages, re.MULTILINE))
    documented = [value for namespace in shown & set(NAMESPACES) for value in public_names(namespace).values()]
    missing = [
        f"{namespace}.{name}"
        for namespace in NAMESPACES
        for name, value in public_names(namespace).items()
        if f"{namespace}.{name}" not in shown and not any(value is known for known in documented)
    ]
    assert missing == []


def test_the_top_has_few_names_and_all_of_them_load() -> None:
    assert len(spillover.__all__) <= 25
    assert [name for name in dir(spillover) if not hasattr(spillover, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spillover.nothing  # noqa: B018


def test_what_is_missing_would_be_found() -> None:
    class Undocumented(spillover.Uniform):
        pass

    assert own_docstring(Undocumented) == ""
    assert own_docstring(spillover.Uniform)
