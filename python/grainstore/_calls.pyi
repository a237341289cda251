"""What both faces of a store are made of; `_store.pyi` has the types."""

from typing import Any

class Calls: ...

def quoted(text: str) -> str: ...
def query_of(
    where: Any, text: Any, vector: Any, expand: Any, sort: Any, include_superseded: bool
) -> dict[str, Any]: ...
