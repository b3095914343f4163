"""The client of a running service: the verbs of `Learner`, over HTTP, with safe retries."""

from spillover.registry import needed_for

with needed_for("the client", "serve"):
    from spillover.client.client import Client, Decision, Stream
    from spillover.client.transport import Refused, Unreachable

__all__ = ["Client", "Decision", "Refused", "Stream", "Unreachable"]
