"""What tests of the saver share."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6


def config(thread: object = "thread", ns: str | None = "", checkpoint_id: str | None = None) -> Any:
    """A config."""
    found: dict[str, Any] = {"thread_id": thread}
    if ns is not None:
        found["checkpoint_ns"] = ns
    if checkpoint_id is not None:
        found["checkpoint_id"] = checkpoint_id
    return {"configurable": found}


def checkpoint(id: str | None = None, versions: dict[str, Any] | None = None, **values: Any) -> Any:
    """A checkpoint with these values."""
    made: dict[str, Any] = {**empty_checkpoint(), "id": id or str(uuid6())}
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, "1") if versions is None else versions
    return made


def ids(found: Any) -> list[str]:
    """The ids of checkpoints, or of their configs."""
    return [_config(one)["configurable"]["checkpoint_id"] for one in found]


def _config(found: Any) -> Any:
    return found if isinstance(found, dict) else found.config
