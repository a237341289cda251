"""What a store answers. Each holds the answer as it came, under ``raw``, and names what is in it."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator, KeysView
from typing import TYPE_CHECKING, Any

from ._plain import time_of

if TYPE_CHECKING:
    from ._grains import Grain


class Answer:
    """An answer, with what it says under ``raw``."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash((type(self), self.raw.get("address", self.raw.get("content_address"))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class Put(Answer):
    """A grain was stored."""

    __slots__ = ()

    @property
    def address(self) -> str:
        """64 lowercase hex digits: the SHA-256 of the grain."""
        address: str = self.raw["address"]
        return address

    @property
    def duplicate(self) -> bool:
        """True if it was there already."""
        return bool(self.raw.get("duplicate"))

    @property
    def superseded(self) -> str | None:
        """The address of the grain whose place it took, if it took one."""
        return self.raw.get("superseded")

    @property
    def warnings(self) -> list[str]:
        """Sentences about what is probably a mistake."""
        return list(self.raw.get("warnings") or ())

    def __str__(self) -> str:
        return self.address


class State(Answer):
    """What the store knows of a grain beside the grain itself."""

    __slots__ = ()

    @property
    def superseded_by(self) -> str | None:
        """The address of what took its place."""
        return self.raw.get("superseded_by")

    @property
    def ended_at(self) -> datetime.datetime | None:
        """When it stopped being current (``system_valid_to``)."""
        ended = self.raw.get("system_valid_to")
        return None if ended is None else time_of(ended)

    @property
    def verification_status(self) -> str:
        """``unverified``, ``verified``, ``contested`` or ``retracted``."""
        status: str = self.raw["verification_status"]
        return status

    @property
    def contradicted(self) -> bool:
        """True if it was marked as contradicted."""
        return bool(self.raw.get("contradicted"))

    @property
    def needs_review(self) -> bool:
        """True if a person has to look at it first."""
        return bool(self.raw.get("needs_review"))

    @property
    def held(self) -> bool:
        """True if it is under litigation hold."""
        return bool(self.raw.get("held"))

    @property
    def access_count(self) -> int | None:
        """How often it was given to somebody, if this call read the grain."""
        return self.raw.get("access_count")

    @property
    def is_current(self) -> bool:
        """True unless it was superseded, contradicted or retracted."""
        return not (self.superseded_by or self.contradicted or self.verification_status == "retracted")


class _OfGrain(Answer):
    """An answer with a grain, whose fields it has by their names."""

    __slots__ = ()

    @property
    def grain(self) -> dict[str, Any]:
        """The grain, with full field names."""
        grain: dict[str, Any] = self.raw["grain"]
        return grain

    @property
    def typed(self) -> Grain:
        """The grain as the dataclass of its type. Raises ``ValueError`` for a type without a name."""
        from . import Grain

        return Grain.from_dict(self.grain)

    def __getitem__(self, name: str) -> Any:
        return self.raw["grain"][name]

    def __contains__(self, name: object) -> bool:
        return name in self.raw["grain"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw["grain"])

    def __len__(self) -> int:
        return len(self.raw["grain"])

    def keys(self) -> KeysView[str]:
        """The names of the fields that the grain has."""
        return self.grain.keys()

    def get(self, name: str, default: Any = None) -> Any:
        """A field of the grain, or ``default`` if it has none of that name."""
        return self.raw["grain"].get(name, default)


class Version(_OfGrain):
    """A grain with its address and its state."""

    __slots__ = ()

    @property
    def address(self) -> str:
        """64 lowercase hex digits."""
        address: str = self.raw["address"]
        return address

    @property
    def state(self) -> State:
        """What the store knows of it."""
        return State(self.raw["state"])


class Stored(Version):
    """A grain that was read, with its bytes."""

    __slots__ = ()

    @property
    def blob(self) -> bytes:
        """The bytes whose SHA-256 is the address."""
        return base64.b64decode(self.raw["blob"])

    @property
    def envelope(self) -> bytes | None:
        """Of a signed grain, its COSE_Sign1."""
        cose = self.raw.get("cose")
        return None if cose is None else base64.b64decode(cose)

    @property
    def signature(self) -> dict[str, Any] | None:
        """Of a signed grain, what its signature came to: ``verdict``, ``did``, ``reason``."""
        return self.raw.get("signature")


class Found(_OfGrain):
    """A grain that a query found."""

    __slots__ = ()

    @property
    def address(self) -> str:
        """64 lowercase hex digits."""
        address: str = self.raw["content_address"]
        return address

    @property
    def score(self) -> float:
        """From 0 to 1, comparable within one answer (docs/rpc.md, query)."""
        return float(self.raw.get("score", 1.0))

    @property
    def matched_fields(self) -> list[str]:
        """The fields that were asked for, and those that have words of the text."""
        return list(self.raw.get("matched_fields") or ())


class Page(Answer):
    """A part of what a query finds."""

    __slots__ = ()

    @property
    def results(self) -> list[Found]:
        """The grains that were found."""
        return [Found(found) for found in self.raw["results"]]

    @property
    def total(self) -> int | None:
        """How many there are on all pages, where that is known."""
        return self.raw.get("total")

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins; None after the last."""
        return self.raw.get("next_cursor")

    @property
    def plan(self) -> dict[str, Any] | None:
        """How it was found, where that was asked for."""
        return self.raw.get("plan")


class Context(Answer):
    """A text for a model, within a budget: ``str(context)`` is the text."""

    __slots__ = ()

    def _formatted(self) -> dict[str, Any]:
        formatted: dict[str, Any] = self.raw.get("formatted_context") or {}
        return formatted

    @property
    def text(self) -> str:
        """The text."""
        text: str = self._formatted().get("text", "")
        return text

    @property
    def tokens(self) -> int | None:
        """How many tokens it has, as the store counts them."""
        return self._formatted().get("tokens")

    @property
    def sources(self) -> dict[str, Any]:
        """What each source gave, by name."""
        sources: dict[str, Any] = self.raw.get("sources") or {}
        return sources

    @property
    def warnings(self) -> list[Any]:
        """What the store has to say about the statement."""
        return list((self.raw.get("_cal") or {}).get("warnings") or ())

    def __str__(self) -> str:
        return self.text
