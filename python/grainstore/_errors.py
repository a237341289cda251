"""Exceptions, by the codes of the store (docs/errors.md).

Each is a :class:`GrainstoreError`, and where Python has a word for the same, that too: what is not there is a
``LookupError``, what may not be done a ``PermissionError``, what came too late a ``TimeoutError``.
"""

from __future__ import annotations

import re
from typing import Any


class GrainstoreError(Exception):
    """A refusal or a failure of the store.

    ``code`` is stable, such as ``"ERR_NOT_FOUND"``; ``message`` and ``hint`` are for people. ``details`` is what else
    is known, as a dict. ``index`` is the place, from 0, of the grain of a batch that is refused; ``cursor`` where to
    go on after an answer that was too large.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "ERR_SCHEMA",
        hint: str = "",
        details: dict[str, Any] | None = None,
        index: int | None = None,
        cursor: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.details = details if details is not None else {}
        self.index = index
        self.cursor = cursor

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.message, self.code, self.hint, self.details, self.index, self.cursor)
        return (_rebuilt, (type(self), state))


def _rebuilt(kind: type[GrainstoreError], state: tuple[Any, ...]) -> GrainstoreError:
    message, code, hint, details, index, cursor = state
    return kind(message, code=code, hint=hint, details=details, index=index, cursor=cursor)


class NotFoundError(GrainstoreError, LookupError):
    """There is no such grain, store or file, or the session does not see it."""


class ErasedError(GrainstoreError, LookupError):
    """It was erased for good."""


class WithdrawnError(GrainstoreError, LookupError):
    """It rests on a consent that was withdrawn."""


class ConflictError(GrainstoreError):
    """What is there already, or has changed meanwhile, is in the way."""


class SupersedeRequiredError(ConflictError):
    """The grain says what it replaces: ``supersede`` asks the policy of that."""


class InvalidGrainError(GrainstoreError, ValueError):
    """A grain, or an option, is not as it has to be."""


class FieldTypeError(InvalidGrainError, TypeError):
    """A field of a grain has a value of another type than it takes."""


class TooLargeError(GrainstoreError, ValueError):
    """It is larger than its limit."""


class DimensionError(GrainstoreError, ValueError):
    """A vector does not fit those of its model."""


class AccessError(GrainstoreError, PermissionError):
    """The session may not do this."""


class PolicyError(GrainstoreError, PermissionError):
    """A rule of the store forbids it, or asks for something first."""


class InvalidationDeniedError(GrainstoreError, PermissionError):
    """The policy of a grain keeps it from being replaced, contradicted or erased."""


class DisabledError(GrainstoreError, PermissionError):
    """CAL is switched off in this store."""


class ReadOnlyError(GrainstoreError, PermissionError):
    """The store was opened to be read."""


class KeyRequiredError(GrainstoreError, PermissionError):
    """The key or the passphrase is missing, or another one."""


class SignatureError(GrainstoreError, ValueError):
    """A signature is not valid, or not enough."""


class TokenError(GrainstoreError, ValueError):
    """A token of ``prepare`` does not hold."""


class LimitError(GrainstoreError, ValueError):
    """It asks for more than there may be at a time."""


class CursorError(GrainstoreError, ValueError):
    """A cursor of another query, or of another time."""


class BusyError(GrainstoreError, TimeoutError):
    """The store is open elsewhere, for one process alone, or its owner does not answer."""


class InDoubtError(GrainstoreError):
    """Who had the store open ended before it answered: the hint says how to look whether it was done."""


class DeadlineError(GrainstoreError, TimeoutError):
    """It took too long."""


class CancelledError(GrainstoreError):
    """It was cancelled."""


class StoreIOError(GrainstoreError, OSError):
    """A file cannot be read or written, or the store is closed."""


class StoreVersionError(GrainstoreError):
    """The store is of another version."""


class IntegrityError(GrainstoreError):
    """What is stored, or was given, is damaged."""


class EmbedderError(GrainstoreError):
    """The embedder failed."""


class CalError(GrainstoreError, ValueError):
    """A statement of CAL is not accepted. ``position`` is its place in the text: start, end, line and column."""

    @property
    def position(self) -> dict[str, int] | None:
        """Where in the statement: ``start``, ``end``, ``line`` and ``col``."""
        position = self.details.get("position")
        return position if isinstance(position, dict) else None

    @property
    def suggestion(self) -> str | None:
        """What to write in its place, if there is a guess."""
        suggestion = self.details.get("suggestion")
        return suggestion if isinstance(suggestion, str) else None


class ArgumentError(GrainstoreError, TypeError):
    """A method was called with arguments that it does not take."""


_BY_CODE: dict[str, type[GrainstoreError]] = {
    "ERR_NOT_FOUND": NotFoundError,
    "ERR_ERASED": ErasedError,
    "ERR_WITHDRAWN": WithdrawnError,
    "ERR_CONFLICT": ConflictError,
    "ERR_SUPERSEDE_REQUIRED": SupersedeRequiredError,
    "ERR_TOO_LARGE": TooLargeError,
    "ERR_DIMENSION": DimensionError,
    "ERR_ACCESS": AccessError,
    "ERR_POLICY": PolicyError,
    "ERR_INVALIDATION_DENIED": InvalidationDeniedError,
    "ERR_DISABLED": DisabledError,
    "ERR_READ_ONLY": ReadOnlyError,
    "ERR_KEY": KeyRequiredError,
    "ERR_SIGNATURE": SignatureError,
    "ERR_TOKEN": TokenError,
    "ERR_LIMIT": LimitError,
    "ERR_CURSOR": CursorError,
    "ERR_BUSY": BusyError,
    "ERR_IN_DOUBT": InDoubtError,
    "ERR_TIMEOUT": DeadlineError,
    "ERR_IO": StoreIOError,
    "ERR_STORE_VERSION": StoreVersionError,
    "ERR_INTEGRITY": IntegrityError,
    "ERR_EMBEDDER": EmbedderError,
    "CAL-E031": DeadlineError,
    "CAL-E075": DeadlineError,
    "CAL-E082": CancelledError,
}

# What hints of the command and of docs/rpc.md are called here, the longer ones first.
_TERMS = (
    ("wait longer (wait_ms)", "wait longer (the argument wait of grainstore.open)"),
    (
        "open the store without --no-audit-reads (`audit_reads` of the library and of rpc)",
        "open it with audit_reads=True",
    ),
    ("open the store to write, without --read-only", "open it without read_only=True"),
    ("open the store to write, without read_only", "open it without read_only=True"),
    ("--read-only (OpenOptions::read_only)", "read_only=True"),
    ("--read-only", "read_only=True"),
    ("create: true", "create=True"),
    ("give the base64 of 32 bytes", "give 32 bytes"),
    ("(--user)", "(the argument user_id)"),
    ("(allow_weaker, --allow-weaker)", "(allow_weaker=True)"),
    ("`grain keys new` makes one", "secrets.token_bytes(32) makes one"),
    ("`grain policy cal on`", 'Store.cal_switch("on")'),
    ("`grain prove lift-hold`", 'Store.prove("lift_hold", ...)'),
    ("`grain audit --checkpoint`", "Store.checkpoint()"),
    ("`grain alf import` (`alf_import`)", "Store.import_alf()"),
    ("`grain alf apply` (`alf_apply`)", "Store.alf_apply()"),
    ("`grain saga import` (`saga_import` with `path`)", 'Store.saga("import", path=...)'),
    ("`grain saga import` (`saga_import` with `document`)", 'Store.saga("import", document=...)'),
    ("`grain ages verify` (`ages_verify`)", "Store.ages_verify()"),
    ("`grain migrate FORMAT FILE` (`migrate`)", "Store.migrate()"),
)
_COMMAND = re.compile(r"`?\bgrain (verify|doctor|compact|sweep|remove-vectors)\b`?")
# How the store tells that a field of a grain has a value of another type (OMS 8).
_WRONG_TYPE = re.compile(r"(grain \d+: )?\S+ takes .+, not ")


def _in_python(hint: str) -> str:
    for of_command, here in _TERMS:
        hint = hint.replace(of_command, here)
    return _COMMAND.sub(lambda found: f"Store.{found.group(1).replace('-', '_')}()", hint)


def made(
    code: str,
    message: str,
    hint: str,
    is_usage: bool,
    places: tuple[int | None, int | None],
    details: dict[str, Any],
) -> GrainstoreError:
    """The exception of an error of the store."""
    hint = _in_python(hint)
    if hint:
        details = {**details, "hint": hint}
    kind: type[GrainstoreError]
    if is_usage:
        kind = ArgumentError
        hint = hint or "docs/python.md has the arguments, docs/rpc.md what each takes"
    elif code == "ERR_SCHEMA" and _WRONG_TYPE.match(message):
        kind = FieldTypeError
    elif code in _BY_CODE:
        kind = _BY_CODE[code]
    elif code.startswith("CAL-"):
        kind = CalError
    else:
        kind = InvalidGrainError
    index, cursor = places
    return kind(message, code=code, hint=hint, details=details, index=index, cursor=cursor)
