"""The mailbox, against an obvious slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.delays import NEVER
from spillover.simulation.protocol import Mailbox
from spillover.types import Choice, Outcome
from tests.properties import examples

ARMS = 3


class Letter:
    """One learner's round, kept until it arrives."""

    def __init__(self, learner, t, delay, x, z, y, probability, memo):
        self.learner, self.t, self.arrival = learner, t, t + int(delay)
        self.x, self.z, self.y = x, z, y
        self.probability, self.memo = probability, memo


def rounds_to_post(horizon, batch, seed, with_memo):
    """Decisions, outcomes and memos that show where they come from."""
    generator = np.random.default_rng(seed)
    for t in range(1, horizon + 1):
        line = (*batch, ARMS)
        probability = generator.random(line) if with_memo else None
        memo = generator.random((*batch, 2)) + t if with_memo else None
        yield (
            t,
            Choice(generator.random(line) < 0.5, probability, memo),
            Outcome(generator.random(line) + t, generator.random(line)),
        )


def deliver_slowly(letters, t, cells):
    """All that arrives at the end of round t, as a list for each learner in the order of play."""
    return [sorted((m for m in letters if m.learner == cell and m.arrival == t), key=lambda m: m.t) for cell in cells]


def check_piece(feedback, played_at, expected, batch, t):
    """One piece of feedback against what each learner should get; None for a learner that gets nothing."""
    for cell, letter in zip(np.ndindex(*batch), expected, strict=True):
        assert bool(feedback.arrived[cell]) is (letter is not None)
        if letter is None:
            assert feedback.age[cell] == 0
            assert not feedback.x[cell].any()
            assert not feedback.z[cell].any()
            assert not feedback.y[cell].any()
            continue
        assert feedback.age[cell] == t - letter.t
        assert played_at[cell] == letter.t
        assert (feedback.x[cell] == letter.x).all()
        assert (feedback.z[cell] == letter.z).all()
        assert (feedback.y[cell] == letter.y).all()
        for ours, theirs in ((feedback.probability, letter.probability), (feedback.memo, letter.memo)):
            assert ours is None if theirs is None else (ours[cell] == theirs).all()


def run_against_twin(delays, batch, with_memo, seed):
    """delays: (rounds, *batch)."""
    horizon, cells = len(delays), list(np.ndindex(*batch))
    mailbox, letters = Mailbox(horizon, batch), []
    for t, choice, outcome in rounds_to_post(horizon, batch, seed, with_memo):
        mailbox.post(t, choice, outcome, delays[t - 1])
        letters += [
            Letter(
                cell,
                t,
                delays[t - 1][cell],
                choice.x[cell],
                outcome.z[cell],
                outcome.y[cell],
                None if choice.probability is None else choice.probability[cell],
                None if choice.memo is None else choice.memo[cell],
            )
            for cell in cells
        ]
        expected = deliver_slowly(letters, t, cells)
        delivered = list(mailbox.deliver(t))
        assert len(delivered) == max(len(row) for row in expected)
        for turn, (feedback, played_at) in enumerate(delivered):
            check_piece(feedback, played_at, [row[turn] if turn < len(row) else None for row in expected], batch, t)


delay_values = st.one_of(st.integers(0, 3), st.integers(0, 30), st.just(NEVER))


@examples(30)
@given(
    st.sampled_from([(), (1,), (3,), (2, 2)]),
    st.integers(1, 25),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_every_arrival_equals_the_slow_twin(batch, horizon, with_memo, shared, data):
    learners = 1 if shared else int(np.prod(batch, dtype=int))
    flat = data.draw(st.lists(delay_values, min_size=horizon * learners, max_size=horizon * learners))
    rows = np.array(flat, np.int64).reshape(horizon, learners)
    delays = np.repeat(rows, int(np.prod(batch, dtype=int)), axis=1) if shared else rows
    run_against_twin(delays.reshape(horizon, *batch), batch, with_memo, horizon)


@pytest.mark.parametrize(
    "delays",
    [
        [0] * 12,
        [5] * 12,
        [11 - t for t in range(12)],  # everything in the last round
        [NEVER] * 12,
        [9, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, 0, 0, 0, 0, 0],  # the ring grows over rounds that are lost
        [8, 6, 4, 2, 0, 3, 1, 0, 2, 1, 0, 0],
    ],
    ids=["at once", "constant", "all at the end", "never", "gap", "backwards"],
)
def test_named_patterns_equal_the_slow_twin(delays):
    run_against_twin(np.repeat(np.array(delays)[:, None], 4, axis=1), (4,), True, 0)


def test_what_cannot_arrive_any_more_is_not_kept():
    mailbox = Mailbox(5, (2,))
    for t, choice, outcome in rounds_to_post(5, (2,), 0, False):
        mailbox.post(t, choice, outcome, np.array([5 - t + 1, NEVER]))
        assert list(mailbox.deliver(t)) == []
    assert not mailbox.rings


def test_a_piece_of_feedback_is_the_receivers_own():
    mailbox = Mailbox(6, (2,))
    for t, choice, outcome in rounds_to_post(3, (2,), 0, True):
        mailbox.post(t, choice, outcome, np.array([3 - t, 4 - t]))
    first = [feedback for feedback, _ in mailbox.deliver(3)]
    for feedback in first:
        for array in (feedback.x, feedback.z, feedback.y, feedback.probability, feedback.memo):
            array[...] = 0
    for feedback, played_at in mailbox.deliver(4):
        assert feedback.z[1].min() > played_at[1]


def test_a_negative_delay_is_refused():
    mailbox = Mailbox(5, (2,))
    ((t, choice, outcome),) = rounds_to_post(1, (2,), 0, False)
    with pytest.raises(ValueError, match=r"delay of round 1 = .*must be 0 or more rounds"):
        mailbox.post(t, choice, outcome, np.array([0, -1]))


def test_a_memo_in_some_rounds_only_is_refused():
    mailbox = Mailbox(5, (2,))
    for t, choice, outcome in rounds_to_post(2, (2,), 0, True):
        carried = choice if t == 1 else choice._replace(memo=None)
        if t == 2:
            with pytest.raises(ValueError, match="memo of round 2: must be arrays in every round, or in none"):
                mailbox.post(t, carried, outcome, np.array([3, 3]))
        else:
            mailbox.post(t, carried, outcome, np.array([3, 3]))
