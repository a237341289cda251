"""The native half: a client of a store. :class:`grainstore.Store` is what people call."""

from collections.abc import Callable
from typing import Any, final

__all__ = ["Cancel", "Client", "version"]

@final
class Cancel:
    """Cancels the calls that it is given to."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None: ...

@final
class Client:
    """A store that this process owns or has joined, and who asks."""

    @staticmethod
    def open(
        params: Any,
        embedder: tuple[Any, str, int, str] | None = None,
        former_embedder: tuple[Any, str, int, str] | None = None,
    ) -> Client: ...
    def with_session(
        self,
        namespace: str | None,
        user_id: str | None,
        actor: str | None,
        purposes: list[str],
    ) -> Client: ...
    def call(
        self,
        method: str,
        params: Any,
        cancel: Cancel | None = None,
        listener: Callable[[Any], object] | None = None,
    ) -> Any: ...
    def close(self) -> None: ...
    @property
    def owner(self) -> int | None: ...
    @property
    def created(self) -> bool: ...
    @property
    def unshared(self) -> str | None: ...

def version() -> str: ...
