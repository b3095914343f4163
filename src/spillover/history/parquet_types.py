"""The types of Parquet columns that can be read as rounds, names, decisions and numbers."""

from pathlib import Path
from typing import Any

from spillover.history.header import Columns

ACCEPTED = {
    "round": "whole numbers, dates (with or without a time) or text",
    "arm": "text or whole numbers",
    "chosen": "truth values, whole numbers or text",
    "z": "numbers or text",
    "y": "numbers or text",
}


def check_types(path: Path, schema: Any, columns: Columns) -> None:
    """Reject columns of the wrong type before anything is read."""
    for meaning, place in columns.places.items():
        field = schema.field(place)
        if not readable(meaning, field.type):
            raise ValueError(f"{path}: column {field.name!r} is of type {field.type}: must be {ACCEPTED[meaning]}")


def readable(meaning: str, kind: Any) -> bool:
    """Whether a column of this type can have this meaning; a dictionary counts as the type of its values."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return readable(meaning, kind.value_type)
    if is_text(kind) or types.is_null(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return True
    if meaning == "round":
        return bool(types.is_floating(kind) or types.is_date(kind) or types.is_timestamp(kind))
    if meaning in ("z", "y"):
        return bool(types.is_floating(kind) or types.is_boolean(kind))
    return bool(types.is_floating(kind) or types.is_boolean(kind))


def is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or is_bytes(kind))


def is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def as_text(path: Path, name: str, column: Any) -> Any:
    """The column, with texts checked to be UTF-8, bytes decoded, and decimal numbers as texts."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_decimal(kind):
        return column.cast(kind).cast(pa.string())  # arrow's own conversion to numbers rounds otherwise than text
    if not is_text(kind):
        return column
    try:
        if is_bytes(kind):
            return (column.dictionary_decode() if kind is not column.type else column).cast(pa.string())
        column.validate(full=True)
    except pa.ArrowInvalid:
        found = f"column {name!r} is of type {column.type} and not all of it is UTF-8"
        raise ValueError(f"{path}: {found}: must be UTF-8 text") from None
    return column
