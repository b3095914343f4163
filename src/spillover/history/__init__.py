"""From a file of what was done and what came of it to the next decision."""

from spillover.history.problems import HistoryError
from spillover.history.record import History, read_history
from spillover.history.replay import replay_history

__all__ = ["History", "HistoryError", "read_history", "replay_history"]
