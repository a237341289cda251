"""Values of Python that JSON has no form of, as ones that it has."""

from __future__ import annotations

import base64
import datetime
import enum
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
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


def moment(name: str, at: Any) -> int | None:
    """The milliseconds of a time: of a datetime, of a text of RFC 3339, or as they are. None stays None."""
    if at is None or (isinstance(at, int) and not isinstance(at, bool)):
        return at
    if isinstance(at, str):
        try:
            # Python 3.10 knows no Z.
            at = datetime.datetime.fromisoformat(f"{at[:-1]}+00:00" if at[-1:] in "zZ" else at)
        except ValueError:
            raise ValueError(f"{name}: {at!r} is no time of RFC 3339, such as 2026-01-15T10:00:00Z") from None
    if not isinstance(at, datetime.datetime):
        raise TypeError(f"{name}: a time is a datetime, milliseconds or a text, not {type(at).__qualname__}")
    try:
        return milliseconds(at)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def seconds(name: str, given: Any) -> int:
    """A number of seconds, in milliseconds."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{name}: a number of seconds is needed, not {type(given).__qualname__}")
    if not 0 <= given < math.inf:
        raise ValueError(f"{name}: {given} is no number of seconds to wait")
    return int(given * 1000)


def whole(name: str, given: Any, least: int = 0) -> int:
    """A whole number from ``least`` on."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{name}: a whole number is needed, not {type(given).__qualname__}")
    if given < least:
        raise ValueError(f"{name}: {given} is less than {least}")
    return given


def text_of(name: str, given: Any) -> str:
    """A text, and nothing that could become one."""
    if not isinstance(given, str):
        raise TypeError(f"{name}: a text is needed, not {type(given).__qualname__}")
    return given


def texts_of(name: str, given: Any) -> list[str]:
    """Several texts: one alone is not taken for its signs."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"{name}: a list of texts is needed, not {type(given).__qualname__}")
    return [text_of(f"{name}[{at}]", one) for at, one in enumerate(given)]


def path_of(name: str, given: Any) -> str:
    """The path of a file, as text."""
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: a path is needed, not {type(given).__qualname__}")
    return os.fsdecode(given)


def is_grain(value: Any) -> bool:
    """True for a dataclass of a grain. Their module is imported by who uses them."""
    return hasattr(type(value), "to_dict") and hasattr(type(value), "grain_type")


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
        return os.fsdecode(value)
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
