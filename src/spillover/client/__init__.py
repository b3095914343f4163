"""The client of a running service: the verbs of `Learner`, over HTTP, with safe retries."""

try:
    import httpx  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the client needs a package that is not installed ({error}): pip install 'spillover[serve]'"
    ) from None

from spillover.client.client import Client
from spillover.client.errors import Refused, Unreachable
from spillover.client.stream import Decision, Stream

__all__ = ["Client", "Decision", "Refused", "Stream", "Unreachable"]
