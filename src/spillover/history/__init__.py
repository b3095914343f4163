"""From a file of past decisions and their outcomes to the next decision."""

from spillover.history.problems import HistoryError
from spillover.history.read import read_history
from spillover.history.record import History
from spillover.history.replay import replay_history

__all__ = ["History", "HistoryError", "read_history", "replay_history"]
