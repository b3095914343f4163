"""Answers in the types that JSON has, the same for the command line and the service."""

from typing import Any

import numpy as np

from spillover.state import encode


def to_json_types(value: Any) -> Any:
    """The same value in types that JSON has."""
    if isinstance(value, dict):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json_types(item) for item in value]
    if isinstance(value, np.generic):
        return to_json_types(value.item())
    return encode(value) if isinstance(value, int | float | str | bool) or value is None else str(value)
