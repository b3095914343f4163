"""Linear algebra on one thread, by several at a time."""

from contextlib import ExitStack, suppress

import pytest

from spillover.service import one_thread


class Threads:
    """Stands for the libraries of linear algebra, and for a limit that is set on them."""

    number = 2

    def limit(self, *, limits: int) -> "Threads":
        self.before, self.number = self.number, limits
        return self

    def restore_original_limits(self) -> None:
        self.number = self.before


@pytest.fixture
def threads(monkeypatch) -> Threads:
    found = Threads()
    monkeypatch.setattr(one_thread, "controller", lambda: found)
    return found


def test_the_limit_ends_with_the_last_of_those_that_asked_for_it(threads) -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(one_thread.one_thread())
    second.enter_context(one_thread.one_thread())
    first.close()  # before the second one, as threads may
    assert threads.number == 1
    second.close()
    assert threads.number == 2


def test_the_limit_ends_with_an_error(threads) -> None:
    with suppress(ZeroDivisionError), one_thread.one_thread():
        assert threads.number == 1
        raise ZeroDivisionError
    assert threads.number == 2
