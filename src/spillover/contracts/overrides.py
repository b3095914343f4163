"""Compare the methods of a class with those that a compiled form was written for.

A compiled form repeats what some methods do. It may only be used if no subclass, mixin or assignment has replaced one
of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any


def methods_of(kind: type, names: Iterable[str]) -> dict[str, Any]:
    """Return the methods of a class, as they are now, by name."""
    return {name: getattr(kind, name) for name in names}


def unchanged(part: object, methods: Mapping[str, Any]) -> bool:
    """Return whether the class of an object still has these methods (see `methods_of`)."""
    kind = type(part)
    return all(getattr(kind, name) is method for name, method in methods.items())
