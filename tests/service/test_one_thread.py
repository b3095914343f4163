"""Linear algebra on one thread, by several at a time."""

from contextlib import ExitStack

from threadpoolctl import threadpool_limits

from spillover.service.one_thread import controller, one_thread


def threads() -> list[int]:
    return [library["num_threads"] for library in controller().info()]


def test_the_limit_ends_with_the_last_of_those_that_asked_for_it() -> None:
    with threadpool_limits(2):
        before = threads()
        assert before
        assert set(before) == {2}
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_thread())
        second.enter_context(one_thread())
        first.close()  # before the second one, as threads may
        assert set(threads()) == {1}
        second.close()
        assert threads() == before
