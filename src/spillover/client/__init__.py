"""The client of a running service: the verbs of `Learner`, over HTTP, with safe retries."""

from spillover.registry import needed_for

with needed_for("the client", "serve"):
    from spillover.client.client import Client
    from spillover.client.errors import Refused, Unreachable
    from spillover.client.stream import Decision, Stream

__all__ = ["Client", "Decision", "Refused", "Stream", "Unreachable"]
