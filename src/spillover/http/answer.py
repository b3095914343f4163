"""Answers as JSON, written in the thread that made them."""

from typing import Any

from fastapi import Response

from spillover.service.events import json_text


class Json(Response):
    """JSON without NaN or infinities."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()
