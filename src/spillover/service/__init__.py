"""Live decisions: streams on a log that loses nothing, decided as `spillover next` decides their exports."""

from spillover.service.errors import Conflict, Invalid, NotFound, StorageError
from spillover.service.log import SqliteLog
from spillover.service.open_streams import Receipt
from spillover.service.rounds import Outcome, Report, Status
from spillover.service.service import Decision, Service
from spillover.service.settings import Settings

__all__ = [
    "Conflict",
    "Decision",
    "Invalid",
    "NotFound",
    "Outcome",
    "Receipt",
    "Report",
    "Service",
    "Settings",
    "SqliteLog",
    "Status",
    "StorageError",
]
