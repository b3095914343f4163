"""Find parts by name: built in, from installed packages, or your own classes; say how to install what is missing.

There is one rule for policies, graph learners, environments, delays, studies and commands. A package adds parts by an
entry point of the registry's group. A class in a file of the current folder needs no package: its name is
"module:Class".
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spillover.validate import suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """A table of the built-in parts by name, which finds others by their names too.

    what: the part in an error, such as "policy". group: the entry points of installed packages. base: the class or
    protocol that others must keep; a part is such a class (or a `partial` of one), or an object of it.

    >>> tables = Registry("table", "example.tables", dict, {"plain": dict})
    >>> list(tables), tables.find("plain"), tables.find("collections:OrderedDict")
    (['plain'], <class 'dict'>, <class 'collections.OrderedDict'>)
    >>> tables.find("plane")
    Traceback (most recent call last):
    ValueError: table = 'plane': must be one of plain or module:Class; did you mean plain?
    """

    def __init__(self, what: str, group: str, base: type, built_in: Mapping[str, Part]) -> None:
        self.what, self.group, self.base = what, group, base
        self.built_in = dict(built_in)

    def __getitem__(self, name: str) -> Part:
        return self.built_in[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.built_in)

    def __len__(self) -> int:
        return len(self.built_in)

    def installed(self) -> dict[str, "EntryPoint"]:
        """Entry points of installed packages by name, not loaded yet; a built-in name goes before them."""
        return {name: point for name, point in entry_points_of(self.group).items() if name not in self.built_in}

    def names(self) -> list[str]:
        """The names that `find` knows; "module:Class" always works too."""
        return [*self.built_in, *self.installed()]

    def loadable(self, notify: Callable[[str], None]) -> list[str]:
        """The names whose parts load; for each installed part that does not, `notify` gets the reason."""
        found = list(self.built_in)
        for name in self.installed():
            try:
                self.find(name)
                found.append(name)
            except ValueError as error:
                notify(str(error))
        return found

    def is_name(self, name: object) -> bool:
        """Whether `find` may know it; installed packages are asked last, as that takes time."""
        return isinstance(name, str) and (name in self.built_in or ":" in name or name in self.installed())

    def find(self, name: object, called: str | None = None) -> Part:
        """The part of that name; `called` is what an error calls the name, such as the key in a file."""
        called = called or self.what
        if not isinstance(name, str) or not self.is_name(name):
            names = self.names()
            listed = f"one of {', '.join(names)} or module:Class"
            raise ValueError(f"{called} = {name!r}: must be {listed}{suggestion(str(name), names)}")
        if name in self.built_in:
            return self.built_in[name]
        found: Part = own_part(name, called) if ":" in name else load(self.installed()[name], called)
        if not self.keeps(found):
            raise ValueError(f"{called} = {name!r}: must name a {self.what}, not {found!r}")
        return found

    def keeps(self, found: Any) -> bool:
        """Whether it is a part of the right kind; its parameters are checked where it is made."""
        if isinstance(found, partial):
            return self.keeps(found.func)
        return issubclass(found, self.base) if isinstance(found, type) else isinstance(found, self.base)


@cache
def entry_points_of(group: str) -> dict[str, "EntryPoint"]:
    """Entry points, as they were when this process first asked: to look takes 10 ms and more."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def load(point: "EntryPoint", called: str) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever another package does when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{called} = {point.name!r}: must be an entry point that loads ({point.value}): {reason}"
        ) from error


def own_part(name: str, called: str) -> Any:
    """Load "module:Class"; modules in the current folder count."""
    module, _, inside = name.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # processes that are started later look there too
    importlib.invalidate_caches()  # the file may have been written a moment ago
    try:
        found = vars(importlib.import_module(module))
    except Exception as error:  # an error in a file that somebody is writing
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{called} = {name!r}: must be module:Class of a module that imports: {reason}") from error
    if inside not in found:
        hint = suggestion(inside, (each for each in found if not each.startswith("_")))
        raise ValueError(f"{called} = {name!r}: must name a class in {module}, which has no {inside!r}{hint}")
    return found[inside]


@contextmanager
def needed_for(what: str, extra: str) -> Iterator[None]:
    """Import optional packages inside of this; if one is missing, the error says how to install it.

    >>> with needed_for("a seance", "spirits"):
    ...     import ouija
    Traceback (most recent call last):
    ModuleNotFoundError: a seance needs a package that is not installed (ouija): pip install "spillover[spirits]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        message = f'{what} needs a package that is not installed ({error.name}): pip install "spillover[{extra}]"'
        raise ModuleNotFoundError(message, name=error.name) from None
