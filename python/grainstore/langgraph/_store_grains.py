"""What an item is made of: the grains of its versions, of the parts of long values, and of its leases.

- An *item* grain is a version of an item. Its subject is the key, its object the JSON of the value. The version that is
  current is the item; a put supersedes it, so that the former ones are its history.
- *Part* grains hold the JSON of a value that is too long for one grain. The item names them in ``content_refs``. They
  are written before it and erased before it is, so an item without all of its parts is one that is being deleted.
- A *lease* says until when a version is kept. Its time is when it ends, so that what has ended is found by its time.
- A *mark* says that a namespace has items: so listing namespaces does not read the items.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._adapters import decoded
from ._store_names import Place, namespace_of, tag_of
from ._store_values import Part, Text

ITEM = "langgraphitem"
PART = "langgraphpart"
LEASE = "langgraphlease"
MARK = "langgraphspace"
#: The subject of the mark of a namespace.
MARK_SUBJECT = "namespace"

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
# The latest time that a grain can have, in milliseconds.
_MAX_MS = 2**32 * 1000 - 1


@dataclass(frozen=True)
class Version:
    """A version of an item, as its grain has it. Times are microseconds since 1970."""

    address: str
    place: Place
    json: str
    created: int
    updated: int
    #: A random number that this version alone has.
    number: int
    #: How long it is kept after it was last used; None for ever.
    ttl: int | None
    #: When it ends, if it is not used meanwhile; None for never.
    ends: int | None
    vectors: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Lease:
    """How long a version is kept."""

    address: str
    place: Place
    #: The number of the version.
    of: int
    ends: int


def new_number() -> int:
    """A number for a version."""
    return secrets.randbits(62)


def time_of(at: int) -> datetime.datetime:
    """The time of microseconds since 1970."""
    return _EPOCH + datetime.timedelta(microseconds=at)


def item_grain(
    place: Place,
    text: Text,
    *,
    number: int,
    created: int,
    updated: int,
    ttl: int | None,
    ends: int | None,
    vectors: int,
    parts: Sequence[str],
) -> dict[str, Any]:
    """The grain of a version."""
    context: dict[str, Any] = {
        "created": created,
        "updated": updated,
        "number": number,
        "vectors": vectors,
    }
    if ttl is not None:
        context.update(ttl=ttl, ends=ends)
    only = None if parts else text.parts[0]
    if only is not None and only.words:
        context["words"] = only.words
    grain = _grain(place, ITEM, "" if only is None else only.json, context)
    grain.update(created_at=created // 1000, system_valid_from=max(updated, created) // 1000)
    if parts:
        grain["content_refs"] = [
            {"uri": f"cal://sha256:{part}", "modality": "text", "mime_type": "application/json"} for part in parts
        ]
    return grain


def part_grain(place: Place, part: Part, *, number: int, index: int, at: int) -> dict[str, Any]:
    """The grain of a part of the value of a version."""
    context: dict[str, Any] = {"number": number, "part": index}
    if part.words:
        context["words"] = part.words
    return {**_grain(place, PART, part.json, context), "created_at": at // 1000}


def lease_grain(place: Place, *, of: int, ends: int, at: int) -> dict[str, Any]:
    """The grain of a lease. Two leases are never the same grain."""
    context = {"number": of, "ends": ends, "id": new_number()}
    grain = _grain(place, LEASE, "", context)
    grain.update(created_at=at // 1000, timestamp_ms=min(max(ends // 1000, 0), _MAX_MS))
    return grain


def mark_grain(path: str, *, created: int, leaves: bool) -> dict[str, Any]:
    """The grain that marks a namespace. ``leaves`` tells that it is about to be erased."""
    return {
        "type": "belief",
        "namespace": path,
        "subject": MARK_SUBJECT,
        "relation": MARK,
        "object": "",
        "confidence": 1.0,
        "context": {"created": created, "leaves": leaves, "id": new_number()},
        "structural_tags": [tag_of(path)],
        "created_at": created // 1000,
    }


def version_of(address: str, grain: Mapping[str, Any]) -> Version:
    """The version that a grain holds."""
    context = grain["context"]
    return Version(
        address=address,
        place=place_in(grain),
        json=grain["object"],
        created=context["created"],
        updated=context["updated"],
        number=context["number"],
        ttl=context.get("ttl"),
        ends=context.get("ends"),
        vectors=context["vectors"],
        parts=tuple(ref["uri"].rpartition(":")[2] for ref in grain.get("content_refs") or ()),
    )


def lease_of(address: str, grain: Mapping[str, Any]) -> Lease:
    """The lease that a grain holds."""
    context = grain["context"]
    return Lease(address, place_in(grain), context["number"], context["ends"])


def place_in(grain: Mapping[str, Any]) -> Place:
    """The place of the item that a grain is of."""
    return Place(namespace_of(grain["namespace"]), decoded(grain["subject"]))


def _grain(place: Place, relation: str, object: str, context: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "belief",
        "namespace": place.path,
        "subject": place.subject,
        "relation": relation,
        "object": object,
        "confidence": 1.0,
        "context": context,
        "structural_tags": [tag_of(place.path)],
    }
