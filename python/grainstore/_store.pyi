import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Literal, TypeAlias

from typing_extensions import Self

from . import _native
from ._answers import Context, Found, Page, Put, Stored, Version
from ._calls import Calls
from ._embedder import Embedder
from ._grains import Grain, Time

# A grain: a dataclass, a dict with its type, or its bytes.
_Grain: TypeAlias = Grain | Mapping[str, Any] | bytes | bytearray | memoryview
# The address of a grain, or what was answered of it.
_Address: TypeAlias = str | Put | Version | Found
# One vector, or several: dicts with model, values, and if need be metric and chunk.
_Vectors: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]
_Where: TypeAlias = Mapping[str, Any]
_Progress: TypeAlias = Callable[[int, int], object]
_Answer: TypeAlias = dict[str, Any]
_Sensitivity: TypeAlias = Literal["public", "internal", "pii", "phi"]
_Format: TypeAlias = Literal["sml", "markdown", "json", "yaml", "text", "triples", "toon"]
_Direction: TypeAlias = Literal["out", "in", "both"]

class _Shared:
    def __init__(self, path: str, client: _native.Client, threads: int, embedders: Sequence[Any]) -> None: ...
    def pool(self) -> ThreadPoolExecutor: ...
    def check(self) -> None: ...
    def close(self) -> None: ...

class _Face(Calls):
    def __init__(
        self,
        client: _native.Client,
        shared: _Shared,
        scope: Any,
    ) -> None: ...
    def session(
        self,
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        actor: str | None = None,
        purposes: Iterable[str] = (),
    ) -> Self: ...
    @property
    def path(self) -> str: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def owner_pid(self) -> int | None: ...
    @property
    def created(self) -> bool: ...

class Store(_Face):
    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: _Progress | None = None,
    ) -> Any: ...
    def put(
        self,
        grain: _Grain | None = None,
        *,
        cose: bytes | None = None,
        same_fact: Literal["add", "keep", "supersede", "unique"] | None = None,
        vectors: _Vectors | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> Put: ...
    def put_many(
        self,
        grains: Iterable[_Grain],
        *,
        vectors: Iterable[_Vectors | None] | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> list[Put]: ...
    def supersede(
        self,
        old: _Address,
        grain: _Grain | None = None,
        *,
        cose: bytes | None = None,
        reason: str | None = None,
        vectors: _Vectors | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> Put: ...
    def embed(self, address: _Address, vectors: _Vectors) -> None: ...
    def wait_for_vectors(self, timeout: float = 10.0) -> bool: ...
    def position(self) -> str | None: ...
    def wait_for(self, position: str | None = None, timeout: float = 10.0) -> str | None: ...
    def hold(self, address: _Address, reason: str) -> None: ...
    def lift_hold(self, address: _Address, reason: str, *, cose: bytes | None = None) -> None: ...
    def set_verification(
        self,
        address: _Address,
        status: Literal["unverified", "verified", "contested", "retracted"],
        reason: str,
        *,
        cose: bytes | None = None,
    ) -> None: ...
    def contradict(self, address: _Address, reason: str, *, cose: bytes | None = None) -> None: ...
    def erase(
        self,
        address: _Address,
        reason: str,
        *,
        dry_run: bool = False,
        now: bool = False,
    ) -> _Answer: ...
    def erase_user(
        self,
        user_id: str,
        reason: str,
        *,
        dry_run: bool = False,
        now: bool = False,
    ) -> _Answer: ...
    def sweep(self) -> _Answer: ...
    def subject_report(
        self,
        user_id: str,
        *,
        versions: bool = False,
        cursor: str | None = None,
    ) -> _Answer: ...
    def get(self, address: _Address) -> Stored: ...
    def get_many(self, addresses: Iterable[_Address]) -> list[_Answer | None]: ...
    def exists(self, address: _Address) -> bool: ...
    def resolve(self, prefix: str, *, limit: int = 2) -> list[str]: ...
    def latest(
        self,
        subject: str,
        relation: str,
        *,
        namespace: str | None = None,
        as_of: Time | None = None,
        valid_at: Time | None = None,
    ) -> Version | None: ...
    def history(
        self,
        address: _Address | None = None,
        *,
        subject: str | None = None,
        relation: str | None = None,
        namespace: str | None = None,
        as_of: Time | None = None,
    ) -> list[Version]: ...
    def versions(
        self,
        address: _Address,
        towards: Literal["older", "newer"],
        *,
        limit: int = 50,
    ) -> list[Version]: ...
    def page(
        self,
        where: _Where | None = None,
        *,
        text: str | None = None,
        vector: Mapping[str, Any] | None = None,
        expand: Mapping[str, Any] | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        total: bool = False,
    ) -> Page: ...
    def cal(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        evolve: bool = False,
        now: Time | None = None,
        format: _Format | None = None,
        where: _Where | None = None,
        expand: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> _Answer: ...
    def assemble(
        self,
        intent: str | None = None,
        sources: str | Mapping[str, str] | None = None,
        *,
        budget: int = 2000,
        about: str | None = None,
        params: Mapping[str, Any] | None = None,
        format: _Format = "sml",
        now: Time | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> Context: ...
    def prepare(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        evolve: bool = False,
        terms: Mapping[str, Any] | None = None,
        namespace: str | None = None,
    ) -> _Answer: ...
    def execute(self, token: Mapping[str, Any]) -> _Answer: ...
    def neighbours(
        self,
        node: str,
        *,
        direction: _Direction | None = None,
        relation: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def paths(
        self,
        start: str,
        end: str,
        *,
        max_hops: int = 4,
        direction: _Direction | None = None,
        relation: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def ancestry(
        self,
        address: _Address,
        *,
        max_hops: int = 16,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def children(
        self,
        address: _Address,
        *,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def related(
        self,
        address: _Address,
        *,
        kind: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def thread(
        self,
        *,
        message: str | None = None,
        session_id: str | None = None,
        state: str | None = None,
        include_superseded: bool = False,
    ) -> _Answer: ...
    def explain_policy(
        self,
        address: _Address,
        *,
        supersede: _Address | None = None,
        reason: str | None = None,
    ) -> _Answer: ...
    def sign(
        self,
        grain: _Grain,
        key: bytes,
        *,
        algorithm: Literal["ed25519", "p256"] = "ed25519",
    ) -> _Answer: ...
    def verify_signature(self, cose: bytes) -> _Answer: ...
    def audit(
        self,
        *,
        after: int | None = None,
        limit: int = 50,
        by: str | None = None,
        reads: bool = False,
        to: int | None = None,
    ) -> _Answer: ...
    def checkpoint(self) -> _Answer: ...
    def verify(
        self,
        *,
        full: bool = False,
        checkpoint: Mapping[str, Any] | None = None,
        signer: str | None = None,
        certificates: Sequence[Mapping[str, Any]] | None = None,
    ) -> _Answer: ...
    def stats(self) -> _Answer: ...
    def doctor(self) -> _Answer: ...
    def reindex(self) -> _Answer: ...
    def compact(self) -> _Answer: ...
    def backup(self, path: str | os.PathLike[str]) -> _Answer: ...
    def export_grains(
        self,
        path: str | os.PathLike[str],
        *,
        where: str | _Where | None = None,
        user_id: str | None = None,
        compress: Literal["zstd", "lz4", "none"] | None = None,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def import_grains(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def import_alf(
        self,
        path: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        mirror: bool = False,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def export_alf(
        self,
        path: str | os.PathLike[str],
        *,
        agent_id: str | None = None,
        agent_name: str | None = None,
        native: bool = False,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def migrate(
        self,
        format: str,
        path: str | os.PathLike[str],
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        dry_run: bool = False,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def alf_delta(
        self,
        path: str | os.PathLike[str],
        since: int,
        *,
        agent_id: str | None = None,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def alf_apply(
        self,
        path: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def alf_validate(self, path: str | os.PathLike[str]) -> _Answer: ...
    def alf_purge(
        self,
        reason: str,
        requested_by: str,
        *,
        ids: Sequence[str] | None = None,
        user_id: str | None = None,
        whole_agent: bool = False,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> _Answer: ...
    def ages_segments(self) -> _Answer: ...
    def ages_export(
        self,
        path: str | os.PathLike[str],
        *,
        segment: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
        namespace: str | None = None,
        progress: _Progress | None = None,
    ) -> _Answer: ...
    def ages_verify(self, path: str | os.PathLike[str]) -> _Answer: ...
    def saga(self, operation: str, **params: Any) -> _Answer: ...
    def migrate_formats(self) -> list[_Answer]: ...
    def prove(
        self,
        operation: Literal["supersede", "contradict", "contest", "retract", "lift_hold"],
        address: _Address,
        key: bytes,
        *,
        grain: Grain | Mapping[str, Any] | None = None,
        signed: bool | None = None,
        algorithm: Literal["ed25519", "p256"] = "ed25519",
    ) -> _Answer: ...
    def disclose(
        self,
        of: _Address | Grain | Mapping[str, Any],
        hide: Iterable[str],
    ) -> _Answer: ...
    def encode(self, grain: Grain | Mapping[str, Any]) -> _Answer: ...
    def decode(self, blob: bytes) -> _Answer: ...
    def policy_show(self, preset: str | None = None) -> _Answer: ...
    def policy_set(self, rules: str, reason: str, *, allow_weaker: bool = False) -> _Answer: ...
    def owner(self, agent: str) -> _Answer: ...
    def capabilities(self, *, agent: str | None = None, name: str | None = None) -> _Answer: ...
    def handoffs(self, session_id: str) -> _Answer: ...
    def cal_convert(self, query: str | Mapping[str, Any]) -> _Answer: ...
    def cal_switch(
        self,
        to: Literal["on", "reads", "off"] | None = None,
        reason: str | None = None,
    ) -> _Answer: ...
    def remove_vectors(self, model: str) -> int: ...
    def rotate_keys(
        self,
        *,
        key_file: str | os.PathLike[str] | None = None,
        user_id: str | None = None,
    ) -> _Answer: ...
    def stream(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_event: Callable[[_Answer], object],
        format: _Format | None = None,
    ) -> _Answer: ...
    def query(
        self,
        where: _Where | None = None,
        *,
        text: str | None = None,
        vector: Mapping[str, Any] | None = None,
        expand: Mapping[str, Any] | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        limit: int | None = None,
        include_superseded: bool = False,
    ) -> Iterator[Found]: ...
    @property
    def aio(self) -> AsyncStore: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class AsyncStore(_Face):
    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, Any]: ...
    def put(
        self,
        grain: _Grain | None = None,
        *,
        cose: bytes | None = None,
        same_fact: Literal["add", "keep", "supersede", "unique"] | None = None,
        vectors: _Vectors | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> Coroutine[Any, Any, Put]: ...
    def put_many(
        self,
        grains: Iterable[_Grain],
        *,
        vectors: Iterable[_Vectors | None] | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> Coroutine[Any, Any, list[Put]]: ...
    def supersede(
        self,
        old: _Address,
        grain: _Grain | None = None,
        *,
        cose: bytes | None = None,
        reason: str | None = None,
        vectors: _Vectors | None = None,
        sensitivity: _Sensitivity | None = None,
    ) -> Coroutine[Any, Any, Put]: ...
    def embed(self, address: _Address, vectors: _Vectors) -> Coroutine[Any, Any, None]: ...
    def wait_for_vectors(self, timeout: float = 10.0) -> Coroutine[Any, Any, bool]: ...
    def position(self) -> Coroutine[Any, Any, str | None]: ...
    def wait_for(self, position: str | None = None, timeout: float = 10.0) -> Coroutine[Any, Any, str | None]: ...
    def hold(self, address: _Address, reason: str) -> Coroutine[Any, Any, None]: ...
    def lift_hold(
        self,
        address: _Address,
        reason: str,
        *,
        cose: bytes | None = None,
    ) -> Coroutine[Any, Any, None]: ...
    def set_verification(
        self,
        address: _Address,
        status: Literal["unverified", "verified", "contested", "retracted"],
        reason: str,
        *,
        cose: bytes | None = None,
    ) -> Coroutine[Any, Any, None]: ...
    def contradict(
        self,
        address: _Address,
        reason: str,
        *,
        cose: bytes | None = None,
    ) -> Coroutine[Any, Any, None]: ...
    def erase(
        self,
        address: _Address,
        reason: str,
        *,
        dry_run: bool = False,
        now: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def erase_user(
        self,
        user_id: str,
        reason: str,
        *,
        dry_run: bool = False,
        now: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def sweep(self) -> Coroutine[Any, Any, _Answer]: ...
    def subject_report(
        self,
        user_id: str,
        *,
        versions: bool = False,
        cursor: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def get(self, address: _Address) -> Coroutine[Any, Any, Stored]: ...
    def get_many(
        self,
        addresses: Iterable[_Address],
    ) -> Coroutine[Any, Any, list[_Answer | None]]: ...
    def exists(self, address: _Address) -> Coroutine[Any, Any, bool]: ...
    def resolve(self, prefix: str, *, limit: int = 2) -> Coroutine[Any, Any, list[str]]: ...
    def latest(
        self,
        subject: str,
        relation: str,
        *,
        namespace: str | None = None,
        as_of: Time | None = None,
        valid_at: Time | None = None,
    ) -> Coroutine[Any, Any, Version | None]: ...
    def history(
        self,
        address: _Address | None = None,
        *,
        subject: str | None = None,
        relation: str | None = None,
        namespace: str | None = None,
        as_of: Time | None = None,
    ) -> Coroutine[Any, Any, list[Version]]: ...
    def versions(
        self,
        address: _Address,
        towards: Literal["older", "newer"],
        *,
        limit: int = 50,
    ) -> Coroutine[Any, Any, list[Version]]: ...
    def page(
        self,
        where: _Where | None = None,
        *,
        text: str | None = None,
        vector: Mapping[str, Any] | None = None,
        expand: Mapping[str, Any] | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        total: bool = False,
    ) -> Coroutine[Any, Any, Page]: ...
    def cal(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        evolve: bool = False,
        now: Time | None = None,
        format: _Format | None = None,
        where: _Where | None = None,
        expand: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def assemble(
        self,
        intent: str | None = None,
        sources: str | Mapping[str, str] | None = None,
        *,
        budget: int = 2000,
        about: str | None = None,
        params: Mapping[str, Any] | None = None,
        format: _Format = "sml",
        now: Time | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> Coroutine[Any, Any, Context]: ...
    def prepare(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        evolve: bool = False,
        terms: Mapping[str, Any] | None = None,
        namespace: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def execute(self, token: Mapping[str, Any]) -> Coroutine[Any, Any, _Answer]: ...
    def neighbours(
        self,
        node: str,
        *,
        direction: _Direction | None = None,
        relation: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def paths(
        self,
        start: str,
        end: str,
        *,
        max_hops: int = 4,
        direction: _Direction | None = None,
        relation: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def ancestry(
        self,
        address: _Address,
        *,
        max_hops: int = 16,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def children(
        self,
        address: _Address,
        *,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def related(
        self,
        address: _Address,
        *,
        kind: str | None = None,
        limit: int = 50,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def thread(
        self,
        *,
        message: str | None = None,
        session_id: str | None = None,
        state: str | None = None,
        include_superseded: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def explain_policy(
        self,
        address: _Address,
        *,
        supersede: _Address | None = None,
        reason: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def sign(
        self,
        grain: _Grain,
        key: bytes,
        *,
        algorithm: Literal["ed25519", "p256"] = "ed25519",
    ) -> Coroutine[Any, Any, _Answer]: ...
    def verify_signature(self, cose: bytes) -> Coroutine[Any, Any, _Answer]: ...
    def audit(
        self,
        *,
        after: int | None = None,
        limit: int = 50,
        by: str | None = None,
        reads: bool = False,
        to: int | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def checkpoint(self) -> Coroutine[Any, Any, _Answer]: ...
    def verify(
        self,
        *,
        full: bool = False,
        checkpoint: Mapping[str, Any] | None = None,
        signer: str | None = None,
        certificates: Sequence[Mapping[str, Any]] | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def stats(self) -> Coroutine[Any, Any, _Answer]: ...
    def doctor(self) -> Coroutine[Any, Any, _Answer]: ...
    def reindex(self) -> Coroutine[Any, Any, _Answer]: ...
    def compact(self) -> Coroutine[Any, Any, _Answer]: ...
    def backup(self, path: str | os.PathLike[str]) -> Coroutine[Any, Any, _Answer]: ...
    def export_grains(
        self,
        path: str | os.PathLike[str],
        *,
        where: str | _Where | None = None,
        user_id: str | None = None,
        compress: Literal["zstd", "lz4", "none"] | None = None,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def import_grains(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def import_alf(
        self,
        path: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        mirror: bool = False,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def export_alf(
        self,
        path: str | os.PathLike[str],
        *,
        agent_id: str | None = None,
        agent_name: str | None = None,
        native: bool = False,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def migrate(
        self,
        format: str,
        path: str | os.PathLike[str],
        *,
        namespace: str | None = None,
        user_id: str | None = None,
        dry_run: bool = False,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def alf_delta(
        self,
        path: str | os.PathLike[str],
        since: int,
        *,
        agent_id: str | None = None,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def alf_apply(
        self,
        path: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def alf_validate(self, path: str | os.PathLike[str]) -> Coroutine[Any, Any, _Answer]: ...
    def alf_purge(
        self,
        reason: str,
        requested_by: str,
        *,
        ids: Sequence[str] | None = None,
        user_id: str | None = None,
        whole_agent: bool = False,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def ages_segments(self) -> Coroutine[Any, Any, _Answer]: ...
    def ages_export(
        self,
        path: str | os.PathLike[str],
        *,
        segment: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
        namespace: str | None = None,
        progress: _Progress | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def ages_verify(self, path: str | os.PathLike[str]) -> Coroutine[Any, Any, _Answer]: ...
    def saga(self, operation: str, **params: Any) -> Coroutine[Any, Any, _Answer]: ...
    def migrate_formats(self) -> Coroutine[Any, Any, list[_Answer]]: ...
    def prove(
        self,
        operation: Literal["supersede", "contradict", "contest", "retract", "lift_hold"],
        address: _Address,
        key: bytes,
        *,
        grain: Grain | Mapping[str, Any] | None = None,
        signed: bool | None = None,
        algorithm: Literal["ed25519", "p256"] = "ed25519",
    ) -> Coroutine[Any, Any, _Answer]: ...
    def disclose(
        self,
        of: _Address | Grain | Mapping[str, Any],
        hide: Iterable[str],
    ) -> Coroutine[Any, Any, _Answer]: ...
    def encode(self, grain: Grain | Mapping[str, Any]) -> Coroutine[Any, Any, _Answer]: ...
    def decode(self, blob: bytes) -> Coroutine[Any, Any, _Answer]: ...
    def policy_show(self, preset: str | None = None) -> Coroutine[Any, Any, _Answer]: ...
    def policy_set(
        self,
        rules: str,
        reason: str,
        *,
        allow_weaker: bool = False,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def owner(self, agent: str) -> Coroutine[Any, Any, _Answer]: ...
    def capabilities(
        self,
        *,
        agent: str | None = None,
        name: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def handoffs(self, session_id: str) -> Coroutine[Any, Any, _Answer]: ...
    def cal_convert(self, query: str | Mapping[str, Any]) -> Coroutine[Any, Any, _Answer]: ...
    def cal_switch(
        self,
        to: Literal["on", "reads", "off"] | None = None,
        reason: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def remove_vectors(self, model: str) -> Coroutine[Any, Any, int]: ...
    def rotate_keys(
        self,
        *,
        key_file: str | os.PathLike[str] | None = None,
        user_id: str | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def stream(
        self,
        query: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_event: Callable[[_Answer], object],
        format: _Format | None = None,
    ) -> Coroutine[Any, Any, _Answer]: ...
    def query(
        self,
        where: _Where | None = None,
        *,
        text: str | None = None,
        vector: Mapping[str, Any] | None = None,
        expand: Mapping[str, Any] | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        limit: int | None = None,
        include_superseded: bool = False,
    ) -> AsyncIterator[Found]: ...
    @property
    def sync(self) -> Store: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class _Opening(Awaitable[AsyncStore]):
    def __init__(self, opened: Callable[[], AsyncStore]) -> None: ...
    def __await__(self) -> Generator[Any, Any, AsyncStore]: ...
    async def __aenter__(self) -> AsyncStore: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def open(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    read_only: bool = False,
    exclusive: bool = False,
    namespace: str | None = None,
    user_id: str | None = None,
    actor: str | None = None,
    purposes: Iterable[str] = (),
    key: bytes | None = None,
    passphrase: str | None = None,
    preset: Literal["open", "gdpr", "hipaa", "sox", "ccpa", "lgpd"] | None = None,
    compress: bool | None = None,
    operator: str | None = None,
    reviewers: Sequence[str] | None = None,
    languages: Mapping[str | None, str] | None = None,
    embedder: Embedder | Mapping[str, Any] | None = None,
    former_embedder: Embedder | Mapping[str, Any] | None = None,
    memory_bytes: int | None = None,
    audit_reads: bool | None = None,
    count_access: bool | None = None,
    did_documents: str | os.PathLike[str] | None = None,
    did_resolver: Mapping[str, Any] | None = None,
    wait: float = 2.0,
    threads: int = 8,
) -> Store: ...
def aopen(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    read_only: bool = False,
    exclusive: bool = False,
    namespace: str | None = None,
    user_id: str | None = None,
    actor: str | None = None,
    purposes: Iterable[str] = (),
    key: bytes | None = None,
    passphrase: str | None = None,
    preset: Literal["open", "gdpr", "hipaa", "sox", "ccpa", "lgpd"] | None = None,
    compress: bool | None = None,
    operator: str | None = None,
    reviewers: Sequence[str] | None = None,
    languages: Mapping[str | None, str] | None = None,
    embedder: Embedder | Mapping[str, Any] | None = None,
    former_embedder: Embedder | Mapping[str, Any] | None = None,
    memory_bytes: int | None = None,
    audit_reads: bool | None = None,
    count_access: bool | None = None,
    did_documents: str | os.PathLike[str] | None = None,
    did_resolver: Mapping[str, Any] | None = None,
    wait: float = 2.0,
    threads: int = 8,
) -> _Opening: ...
