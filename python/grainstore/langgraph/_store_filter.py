"""Filters of a search, and the conditions of a list of namespaces, as InMemoryStore reads them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import MatchCondition

_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = {"$eq", "$ne", *_ORDERS}


def check_filter(filter: Mapping[str, Any]) -> None:
    """Refuses what no filter has: ``ValueError`` for an unknown operator, or an order of what is no number."""
    for wanted in filter.values():
        _check(wanted)


def check_conditions(conditions: Sequence[MatchCondition]) -> None:
    """Refuses a condition that is none: ``ValueError``."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise ValueError(f"a namespace is matched by prefix or suffix, not by {condition.match_type!r}")


def matches(value: Mapping[str, Any], filter: Mapping[str, Any]) -> bool:
    """True if a value has all that a filter names."""
    return all(_matches(value.get(name), wanted) for name, wanted in filter.items())


def in_namespace(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """True if a namespace begins, or ends, as a condition says."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    begin = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[begin : begin + len(path)]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _is_operators(wanted: Mapping[str, Any]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _check(wanted: Any) -> None:
    if isinstance(wanted, (list, tuple)):
        for one in wanted:
            _check(one)
    elif isinstance(wanted, dict) and not _is_operators(wanted):
        for one in wanted.values():
            _check(one)
    elif isinstance(wanted, dict):
        for name, operand in wanted.items():
            if name not in _OPERATORS:
                known = ", ".join(sorted(_OPERATORS))
                raise ValueError(f"unknown operator of a filter: {name} (there are {known})")
            if name in _ORDERS and _number(operand) is None:
                raise ValueError(f"{name} compares with a number, not with {operand!r}")


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if _is_operators(wanted):
            return all(_applies(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(_matches(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(_matches(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _applies(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and _ORDERS[name](left, right)


def _number(value: Any) -> float | None:
    """A value as a number: a text of digits is one too."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
