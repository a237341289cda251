"""Grainstore: an embedded, content-addressed store for AI-agent memory (OMS 1.3).

>>> import grainstore
>>> with grainstore.open(tmp_path) as store:
...     tea = store.put(grainstore.Belief("alice", "prefers", "tea", confidence=0.9))
...     coffee = grainstore.Belief("alice", "prefers", "coffee", confidence=0.8)
...     _ = store.supersede(tea, coffee, reason="she said so")
...     print(store.assemble("what does alice drink", about="alice", budget=100).text)
<context intent="what does alice drink">
<BLANKLINE>
  <belief subject="alice" confidence="0.8">prefers coffee</belief>
<BLANKLINE>
</context>
"""

import typing as _typing

from ._answers import Answer, Context, Found, Page, Put, State, Stored, Version
from ._embedder import Embedder
from ._errors import (
    AccessError,
    ArgumentError,
    BusyError,
    CalError,
    CancelledError,
    ConflictError,
    CursorError,
    DeadlineError,
    DimensionError,
    DisabledError,
    EmbedderError,
    ErasedError,
    FieldTypeError,
    GrainstoreError,
    InDoubtError,
    IntegrityError,
    InvalidationDeniedError,
    InvalidGrainError,
    KeyRequiredError,
    LimitError,
    NotFoundError,
    PolicyError,
    ReadOnlyError,
    SignatureError,
    StoreIOError,
    StoreVersionError,
    SupersedeRequiredError,
    TokenError,
    TooLargeError,
    WithdrawnError,
)
from ._native import version as _version
from ._store import AsyncStore, Store, aopen, open

if _typing.TYPE_CHECKING:
    from ._grains import (
        Action,
        Belief,
        Consensus,
        Consent,
        Event,
        Goal,
        Grain,
        Observation,
        Reasoning,
        StateGrain,
        Workflow,
    )

__version__ = _version()

__all__ = [
    "AccessError",
    "Action",
    "Answer",
    "ArgumentError",
    "AsyncStore",
    "Belief",
    "BusyError",
    "CalError",
    "CancelledError",
    "ConflictError",
    "Consensus",
    "Consent",
    "Context",
    "CursorError",
    "DeadlineError",
    "DimensionError",
    "DisabledError",
    "Embedder",
    "EmbedderError",
    "ErasedError",
    "Event",
    "FieldTypeError",
    "Found",
    "Goal",
    "Grain",
    "GrainstoreError",
    "InDoubtError",
    "IntegrityError",
    "InvalidGrainError",
    "InvalidationDeniedError",
    "KeyRequiredError",
    "LimitError",
    "NotFoundError",
    "Observation",
    "Page",
    "PolicyError",
    "Put",
    "ReadOnlyError",
    "Reasoning",
    "SignatureError",
    "State",
    "StateGrain",
    "Store",
    "StoreIOError",
    "StoreVersionError",
    "Stored",
    "SupersedeRequiredError",
    "TokenError",
    "TooLargeError",
    "Version",
    "WithdrawnError",
    "Workflow",
    "aopen",
    "open",
]


#: The dataclasses of grains, which take as long to import as all the rest: they are when one of them is looked up.
_GRAINS = frozenset(__all__).difference(globals())


def _name(values: _typing.Mapping[str, _typing.Any], names: frozenset[str]) -> None:
    """Adds what people import from here, by its name: tracebacks and pickles have that."""
    for name in names:
        values[name].__module__ = __name__
        globals()[name] = values[name]


def __getattr__(name: str) -> _typing.Any:
    if name not in _GRAINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _grains

    _name(vars(_grains), _GRAINS)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_name(globals(), frozenset(__all__) - _GRAINS)
