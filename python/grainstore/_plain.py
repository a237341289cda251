"""Values of Python that JSON has no form of, as ones that it has."""

from __future__ import annotations

import base64
import datetime
import enum
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def milliseconds(at: datetime.datetime) -> int:
    """A time in milliseconds since 1970, rounded down.

    Raises ``ValueError`` for a time without a zone: nobody knows when that is.
    """
    if at.tzinfo is None or at.utcoffset() is None:
        raise ValueError("a time needs a zone, such as datetime.now(timezone.utc)")
    return (at - _EPOCH) // _MILLISECOND


def time_of(at: int) -> datetime.datetime:
    """The time of milliseconds since 1970, in UTC."""
    return _EPOCH + at * _MILLISECOND


def is_grain(value: Any) -> bool:
    """True for a dataclass of a grain. Their module is imported by who uses them."""
    return hasattr(value, "to_dict") and hasattr(value, "grain_type")


def plain(value: Any) -> Any:
    """What takes the place of a value. Raises ``TypeError`` for one that is nothing of a grain or a call."""
    if isinstance(value, datetime.datetime):
        return milliseconds(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if is_grain(value):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else os.fsdecode(path)
    # Who has one has imported it.
    uuid = sys.modules.get("uuid")
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    # Arrays of numbers, and numbers of them (numpy, array).
    listed = getattr(value, "tolist", None)
    if listed is not None:
        return listed()
    if isinstance(value, Sequence):
        return list(value)
    if isinstance(value, datetime.date):
        raise TypeError("a date is no time: give a datetime with a zone, or its text")
    raise TypeError(f"{type(value).__qualname__} is no type of a grain: use text, numbers, lists and dicts")
