"""Packages that only some users need: which extra of the package installs them."""

from collections.abc import Iterator
from contextlib import contextmanager


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
