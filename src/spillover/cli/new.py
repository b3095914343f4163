"""`spillover new`: a small working part of one of six kinds and its test, to start your own from."""

import importlib
import keyword
import re
import sys
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, cast

import click

from spillover.cli.app import Group
from spillover.cli.output import say
from spillover.delays import DELAYS
from spillover.environments import ENVIRONMENTS
from spillover.files import write_atomically
from spillover.graph import GRAPHS
from spillover.policies import POLICIES
from spillover.studies import STUDIES

ACCEPTED = "lower-case words and numbers joined by -, such as my-idea"
IN_USE = ("spillover", "numpy", "pytest", "click")


class Kind(NamedTuple):
    """A kind of part; its skeleton is the module of that name in `spillover.skeletons`."""

    name: str
    taken: Callable[[], Iterable[str]]  # names that spillover has already
    about: str
    use: str  # how one is used; {module}, {title} (MyIdea) and {name} (my-idea) are filled in


def command_names() -> list[str]:
    context = click.get_current_context()
    return cast(click.Group, context.find_root().command).list_commands(context)


KINDS = (
    Kind(
        "policy",
        POLICIES.names,
        "Write a policy: epsilon-greedy on a learned graph, which passes spillover.testing.check_policy.",
        "spillover policies {module}:{title}",
    ),
    Kind(
        "environment",
        ENVIRONMENTS.names,
        "Write an environment and its world, which pass spillover.testing.check_environment.",
        '[worlds.{name}] with kind = "{module}:{title}" in an experiment file',
    ),
    Kind(
        "graph",
        GRAPHS.names,
        "Write a graph learner: ridge regression, which passes spillover.testing.check_graph_learner.",
        "spillover next FILE --budget 2 --set graph={module}:{title}",
    ),
    Kind(
        "delay",
        DELAYS.names,
        "Write a delay: weekly reports, which pass spillover.testing.check_delay.",
        '[delays.{name}] with kind = "{module}:{title}" in an experiment file',
    ),
    Kind(
        "command",
        command_names,
        "Write a command with examples in its help, errors of one line and --json.",
        "spillover {module}:{module} --help",
    ),
    Kind(
        "study",
        STUDIES.names,
        "Write a study: an experiment file, and a page with a section of its own.",
        "spillover reproduce {module}:{title} --quick",
    ),
)


@click.group(cls=Group, examples=[f"spillover new {kind.name} my-idea" for kind in KINDS])
def new() -> None:
    """Create a small working part of your own, and its test."""


def add_command(kind: Kind) -> None:
    """The command `spillover new KIND`."""
    line = f"spillover new {kind.name} my-idea"
    notes = "The NAME my-idea gives my_idea.py and test_my_idea.py. Nothing is overwritten."

    @new.command(kind.name, help=f"{kind.about}\n\n{notes}", examples=(line, f"{line} --folder ideas"))
    @click.argument("name")
    @click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Folder to write to.")
    def write(name: str, folder: Path) -> None:
        words = spellings(kind, name)
        write_files({folder / file: text for file, text in skeleton(kind, words).items()})
        say(f"now run: pytest {folder / 'test_{module}.py'.format(**words)}")
        place = "" if folder == Path() else f"in {folder}, "
        say(f"then use it: {place}{kind.use.format(**words)}")


for each in KINDS:
    add_command(each)


def spellings(kind: Kind, name: str) -> dict[str, str]:
    """my-idea as the name of a part, of a module and of a class, if all three are valid."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"name = {name!r}: must be {ACCEPTED}")
    if name in kind.taken():
        raise ValueError(f"name = {name!r}: must be new: it is the name of a built-in {kind.name}")
    module, title = name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))
    # a file random.py would hide Python's own module from all files beside it
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in IN_USE:
        accepted = "a name that is no keyword or module of Python, and no package that the file needs"
        raise ValueError(f"name = {name!r}: must be {accepted}")
    for word in vars(importlib.import_module(f"spillover.skeletons.{kind.name}")).keys() & {module, title}:
        raise ValueError(f"name = {name!r}: must not become {word}, a name that every {kind.name} uses")
    return {"name": name, "module": module, "title": title}


def skeleton(kind: Kind, words: dict[str, str]) -> dict[str, str]:
    """The files to write, by name."""
    replaced = {
        f"spillover.skeletons.{kind.name}": words["module"],
        f"Example{kind.name.capitalize()}": words["title"],
        f"example_{kind.name}": words["module"],
        f"example-{kind.name}": words["name"],
        f"{kind.name}.toml": f"{words['module']}.toml",
    }
    found = {}
    for file in (f"{kind.name}.py", f"{kind.name}.toml", f"test_{kind.name}.py"):
        source = files("spillover.skeletons") / file
        if source.is_file():
            text = source.read_text("utf-8")
            for old, new_word in replaced.items():
                text = text.replace(old, new_word)
            found[file.replace(kind.name, words["module"])] = text
    return found


def write_files(contents: dict[Path, str]) -> None:
    """Write all files, or none if one of them already exists."""
    for path in contents:
        if path.exists():
            raise ValueError(f"{path}: already exists and is not overwritten: choose another name or --folder")
    for path, text in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
        say(f"wrote {path}")
