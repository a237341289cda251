"""Grains as dataclasses: one for each of the ten types of OMS 1.3 (sections 6.2 to 6.11, 8).

Each holds the fields of its type, and those that all types have (OMS 6.1). A field that is None is left out. A grain
can as well be given as a dict, with ``"type"`` in it; docs/fields.md lists the fields. ``more`` takes what has no name
here. Without ``created_at`` a grain is dated when it is stored.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias, TypeVar

#: A time: a datetime with a zone, milliseconds since 1970, or a text of RFC 3339.
Time: TypeAlias = datetime.datetime | int | str

G = TypeVar("G", bound="Grain")


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Grain:
    """The fields that all types have."""

    grain_type: ClassVar[str] = ""

    source_type: str | None = None
    created_at: Time | None = None
    temporal_type: str | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    system_valid_from: Time | None = None
    importance: float | None = None
    author_did: str | None = None
    namespace: str | None = None
    user_id: str | None = None
    structural_tags: Sequence[str] | None = None
    derived_from: Sequence[str | dict[str, Any]] | None = None
    consolidation_level: int | None = None
    success_count: int | None = None
    failure_count: int | None = None
    provenance_chain: Sequence[dict[str, Any]] | None = None
    origin_did: str | None = None
    origin_namespace: str | None = None
    content_refs: Sequence[dict[str, Any]] | None = None
    embedding_refs: Sequence[dict[str, Any]] | None = None
    related_to: Sequence[dict[str, Any]] | None = None
    invalidation_policy: dict[str, Any] | None = None
    supersession_justification: str | None = None
    supersession_auth: Sequence[str | bytes] | None = None
    owner: dict[str, Any] | None = None
    category: int | None = None
    run_id: str | None = None
    role: str | None = None
    timestamp_ms: Time | None = None
    observer_did: str | None = None
    session_id: str | None = None
    entity_id: str | None = None
    epistemic_status: str | None = None
    requires_human_review: bool | None = None
    processing_basis: str | None = None
    identity_state: str | None = None
    license: str | None = None
    trusted_timestamp: dict[str, Any] | None = None
    invalidation_type: str | None = None
    invalidation_reason: str | None = None
    invalidation_initiator: str | None = None
    retention_policy: dict[str, Any] | None = None
    recall_priority: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    # Written once here, and not made for each class when that is imported.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        known = {name: value for name, value in self.__dict__.items() if value is not None and value != {}}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in known.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The grain as a dict, with its type. Raises ``ValueError`` where ``more`` has a field of the dataclass."""
        known = {name: value for name, value in self.__dict__.items() if value is not None and name != "more"}
        for name in self.more:
            if name == "type" or name in self.__dict__:
                raise ValueError(f"more.{name}: give it as an argument of {type(self).__name__}")
        return {"type": self.grain_type, **known, **self.more}

    @classmethod
    def from_dict(cls: type[G], grain: Mapping[str, Any]) -> G:
        """The dataclass of a grain that is a dict. Called on :class:`Grain`, it takes the class of the type.

        Raises ``ValueError`` for a type that is none, or another than the class has.
        """
        named = grain.get("type", cls.grain_type)
        kind: Any = cls if cls.grain_type else TYPES.get(named)
        if kind is None or named != kind.grain_type:
            raise ValueError(f"{named!r} is no type of grain of {cls.__name__}")
        names = {one.name for one in fields(kind)} - {"more"}
        known = {name: value for name, value in grain.items() if name in names}
        more = {name: value for name, value in grain.items() if name not in names and name != "type"}
        made: G = kind(**known, more=more)
        return made


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Belief(Grain):
    """That a subject stands in a relation to an object, and how sure that is (OMS 6.1, 8.1)."""

    grain_type: ClassVar[str] = "belief"

    subject: str = field(kw_only=False)
    relation: str = field(kw_only=False)
    object: str | dict[str, Any] = field(kw_only=False)
    confidence: float
    authorized_namespaces: Sequence[str] | None = None
    authorized_types: Sequence[int] | None = None
    authorized_tools: Sequence[str] | None = None
    delegation_depth: int | None = None
    delegation_expiry: Time | None = None
    context_grains: Sequence[str] | None = None
    return_to: str | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Event(Grain):
    """Something that happened or was said."""

    grain_type: ClassVar[str] = "event"

    content: str = field(kw_only=False)
    consolidated: bool | None = None
    content_blocks: Sequence[dict[str, Any]] | None = None
    model_id: str | None = None
    stop_reason: str | None = None
    token_usage: dict[str, Any] | None = None
    parent_message_id: str | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class StateGrain(Grain):
    """Where an agent stands: a snapshot to go on from."""

    grain_type: ClassVar[str] = "state"

    context: dict[str, Any] = field(kw_only=False)
    plan: Sequence[str] | None = None
    history: Sequence[dict[str, Any]] | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Workflow(Grain):
    """How something is done: steps, and when they are taken."""

    grain_type: ClassVar[str] = "workflow"

    steps: Sequence[str] = field(kw_only=False)
    trigger: str = field(kw_only=False)
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Action(Grain):
    """A tool as it is defined, called, or answered."""

    grain_type: ClassVar[str] = "action"

    action_phase: str | None = None
    tool_name: str | None = None
    input: dict[str, Any] | None = None
    content: Any | None = None
    is_error: bool | None = None
    tool_call_id: str | None = None
    call_batch_id: str | None = None
    tool_type: str | None = None
    tool_version: str | None = None
    execution_mode: str | None = None
    code: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    interpreter_id: str | None = None
    error: str | None = None
    error_type: str | None = None
    duration_ms: int | None = None
    parent_task_id: str | None = None
    tool_description: str | None = None
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    strict: bool | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Observation(Grain):
    """What an observer perceived."""

    grain_type: ClassVar[str] = "observation"

    observer_id: str = field(kw_only=False)
    observer_type: str = field(kw_only=False)
    frame_id: str | None = None
    sync_group: str | None = None
    observation_mode: str | None = None
    observation_scope: str | None = None
    observer_model: str | None = None
    compression_ratio: float | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Goal(Grain):
    """What is to be reached, and how far that is."""

    grain_type: ClassVar[str] = "goal"

    description: str = field(kw_only=False)
    goal_state: str = field(kw_only=False)
    criteria: Sequence[str] | None = None
    criteria_structured: Sequence[dict[str, Any]] | None = None
    priority: int | None = None
    parent_goals: Sequence[str] | None = None
    state_reason: str | None = None
    satisfaction_evidence: Sequence[str] | None = None
    progress: float | None = None
    delegate_to: str | None = None
    delegate_from: str | None = None
    expiry_policy: str | None = None
    recurrence: str | None = None
    evidence_required: int | None = None
    rollback_on_failure: Sequence[str] | None = None
    allowed_transitions: Sequence[str] | None = None
    depends_on: Sequence[str] | None = None
    assigned_agent: str | None = None
    expected_output: str | None = None
    output_grain: str | None = None
    deadline: Time | None = None
    authorized_namespaces: Sequence[str] | None = None
    authorized_types: Sequence[int] | None = None
    authorized_tools: Sequence[str] | None = None
    delegation_depth: int | None = None
    delegation_expiry: Time | None = None
    context_grains: Sequence[str] | None = None
    return_to: str | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Reasoning(Grain):
    """A conclusion, with what led to it."""

    grain_type: ClassVar[str] = "reasoning"

    premises: Sequence[str] | None = None
    conclusion: str | None = None
    inference_method: str | None = None
    alternatives_considered: Sequence[dict[str, Any]] | None = None
    thinking_content: str | None = None
    thinking_redacted: bool | None = None
    statistical_context: dict[str, Any] | None = None
    software_environment: dict[str, Any] | None = None
    parameter_set: dict[str, Any] | None = None
    random_seed: int | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Consensus(Grain):
    """What several observers agree upon."""

    grain_type: ClassVar[str] = "consensus"

    participating_observers: Sequence[str] = field(kw_only=False)
    threshold: int = field(kw_only=False)
    agreement_count: int = field(kw_only=False)
    dissent_count: int = field(kw_only=False)
    dissent_grains: Sequence[str] | None = None
    agreed_content: Any | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None
    subject_did: str | None = None


@dataclass(kw_only=True, repr=False, eq=False, match_args=False)
class Consent(Grain):
    """That somebody lets somebody do something, or takes it back."""

    grain_type: ClassVar[str] = "consent"

    subject_did: str = field(kw_only=False)
    grantee_did: str = field(kw_only=False)
    scope: Sequence[str] = field(kw_only=False)
    is_withdrawal: bool = field(kw_only=False)
    basis: str | None = None
    jurisdiction: str | None = None
    prior_consent: str | None = None
    witness_dids: Sequence[str] | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | dict[str, Any] | None = None
    confidence: float | None = None
    context: dict[str, Any] | None = None


#: The dataclasses by the names of the types.
TYPES: dict[str, type[Grain]] = {
    "belief": Belief,
    "event": Event,
    "state": StateGrain,
    "workflow": Workflow,
    "action": Action,
    "observation": Observation,
    "goal": Goal,
    "reasoning": Reasoning,
    "consensus": Consensus,
    "consent": Consent,
}
