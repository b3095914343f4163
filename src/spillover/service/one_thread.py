"""Linear algebra on one thread, as in `spillover next`: small matrices, and the same bits on every machine."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def controller() -> Any:
    """Knows the libraries that are loaded; to look for them takes longer than a decision."""
    import scipy.linalg  # so that its library is among them  # noqa: F401

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    limit: AbstractContextManager[Any] = controller().limit(limits=1)
    return limit
