"""Answers as JSON, written in the thread that made them."""

import json
from typing import Any

from fastapi import Response


class Json(Response):
    """JSON without NaN or infinities."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
