"""Live decisions: streams on a log that loses nothing, decided as `spillover next` decides their exports."""

from spillover.service.errors import Conflict, Invalid, NotFound, StorageError
from spillover.service.open_streams import Receipt
from spillover.service.outcomes import Outcome, Report, Status
from spillover.service.service import Decision, Service
from spillover.service.settings import Settings
from spillover.service.sqlite_log import SqliteLog

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
