"""The methods of a store, once for both of its faces: what :class:`Store` answers, :class:`AsyncStore` has awaited.

Each method says which method of docs/rpc.md it calls, with which parameters, and what its answer becomes. ``_do`` is
for the face to say. The types are in ``_store.pyi``.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping

from ._answers import Context, Found, Page, Put, Stored, Version
from ._plain import is_grain, moment, path_of, seconds, texts_of, whole

#: Signs that CAL escapes in a text between quotes.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


#: Characters of an intent that a context says it is for (docs/cal.md).
_INTENT = 256
#: Characters of an intent whose words are searched for: a search counts the first 64 words that differ.
_SEARCHED = 4000
#: Grains of a context whose intent has no words.
_NEWEST = 10


def _given(**params):
    """Parameters without those that are not given."""
    return {name: value for name, value in params.items() if value is not None}


def _as_grain(grain):
    """A grain as the store takes it, dated now if it is not dated."""
    if is_grain(grain):
        grain = grain.to_dict()
    elif not isinstance(grain, Mapping):
        raise TypeError(f"a grain is a dict, a dataclass such as Belief, or bytes, not {type(grain).__qualname__}")
    if grain.get("created_at") is None:
        return {**grain, "created_at": time.time_ns() // 1_000_000}
    return dict(grain) if type(grain) is not dict else grain


def _as_input(grain, cose=None):
    """A grain in one of its forms: a dict or dataclass, its bytes, or a signed envelope."""
    if cose is not None:
        if grain is not None:
            raise TypeError("give a grain, or cose, not both")
        return {"cose": base64.b64encode(cose).decode("ascii")}
    if grain is None:
        raise TypeError("there is no grain: give one, or cose")
    if isinstance(grain, (bytes, bytearray, memoryview)):
        return {"blob": base64.b64encode(grain).decode("ascii")}
    return {"grain": _as_grain(grain)}


def _as_vectors(vectors):
    """Vectors as a list of dicts: one dict may be given alone."""
    if vectors is None:
        return None
    return [vectors] if isinstance(vectors, Mapping) else list(vectors)


def _base64(data):
    return None if data is None else base64.b64encode(data).decode("ascii")


def _address(of):
    """The address of a grain: a text, or what was answered of one."""
    address = of if isinstance(of, str) else getattr(of, "address", None)
    if not isinstance(address, str):
        raise TypeError(f"an address is a text, or what was answered of a grain, not {type(of).__qualname__}")
    return address


def quoted(text):
    """A text between quotes, as CAL reads it."""
    return '"' + "".join(sign if sign >= " " else " " for sign in text.translate(_ESCAPES)) + '"'


class Calls:
    """The methods of a store."""

    __slots__ = ()

    def _do(self, method, params, finish=None, *, long=False, progress=None):
        raise NotImplementedError

    def call(self, method, params=None, *, progress=None):
        """Calls any method of docs/rpc.md by its name, with its parameters, and returns its answer as a dict.

        ``progress(done, of)`` is called now and then, for methods that tell how far they are. Raises
        :class:`GrainstoreError`.
        """
        params = {} if params is None else params
        if progress is not None:
            params = {**params, "progress": True}
        return self._do(method, params, long=True, progress=progress)

    # Writing

    def put(self, grain=None, *, cose=None, same_fact=None, vectors=None, sensitivity=None):
        """Stores a grain. Returns :class:`Put` once it is on disk, with its ``address``.

        ``grain`` is a dataclass, a dict with its ``type``, or the bytes of a grain; ``cose`` a signed one in
        its place. ``same_fact`` says what to do where a current grain says the same: ``add`` (the default),
        ``keep``, ``supersede`` or ``unique``. ``vectors`` are dicts of ``model`` and ``values`` (a list or an
        array), ``metric`` and ``chunk``. ``sensitivity`` is what the header says (OMS 13).

        Raises ``TypeError`` and ``ValueError`` with the name of the field; :class:`InvalidGrainError`,
        :class:`SupersedeRequiredError`, :class:`PolicyError`, :class:`ErasedError`, :class:`AccessError`.
        """
        params = _as_input(grain, cose)
        if same_fact is not None or vectors is not None or sensitivity is not None:
            params.update(_given(same_fact=same_fact, vectors=_as_vectors(vectors), sensitivity=sensitivity))
        return self._do("put", params, Put)

    def put_many(self, grains, *, vectors=None, sensitivity=None):
        """Stores all of these grains, or none, in one commit (75,000 and 32 MiB at most).

        ``vectors`` has one entry for each grain. An error has the ``index`` of the grain that is refused.
        """
        grains = list(grains)
        are_bytes = [isinstance(grain, (bytes, bytearray, memoryview)) for grain in grains]
        if are_bytes and all(are_bytes):
            given = {"blobs": [_base64(grain) for grain in grains]}
        else:
            given = {"grains": [_as_grain(grain) for grain in grains]}
        lists = None if vectors is None else [_as_vectors(one) or [] for one in vectors]
        params = {**given, **_given(vectors=lists, sensitivity=sensitivity)}
        return self._do("put_batch", params, _puts, long=True)

    def supersede(self, old, grain=None, *, cose=None, reason=None, vectors=None, sensitivity=None):
        """Puts a grain in the place of another (OMS 17.2), whose own policy decides whether that may be.

        ``old`` is an address, or what was answered of a grain; ``reason`` the justification. Raises
        :class:`InvalidationDeniedError`, and :class:`ConflictError` if something else took the place.
        """
        params = {"old": _address(old), **_as_input(grain, cose)}
        params.update(_given(justification=reason, vectors=_as_vectors(vectors), sensitivity=sensitivity))
        return self._do("supersede", params, Put)

    def embed(self, address, vectors):
        """Gives a stored grain vectors, in place of those it has of the same models."""
        params = {"address": _address(address), "vectors": _as_vectors(vectors)}
        return self._do("embed", params, _nothing)

    def wait_for_vectors(self, timeout=10.0):
        """Waits at most ``timeout`` seconds until the embedder has made all vectors. True if it has."""
        params = {"timeout_ms": seconds("timeout", timeout)}
        return self._do("wait_for_vectors", params, _member("done"), long=True)

    def position(self):
        """Where reads of this copy are in its journal, e.g. ``"1:118"``; ``None`` for a store without one."""
        return self._do("position", {}, _member("position"))

    def wait_for(self, position=None, timeout=10.0):
        """Waits until reads of this copy see a position that another copy answered, or what was acknowledged by
        now. Answers the position it is at then."""
        params = {"timeout_ms": seconds("timeout", timeout), **_given(position=position)}
        return self._do("wait_for", params, _member("position"), long=True)

    def hold(self, address, reason):
        """Puts a litigation hold on a grain: nothing supersedes, contradicts or erases it."""
        return self._do("hold", {"address": _address(address), "reason": reason}, _nothing)

    def lift_hold(self, address, reason, *, cose=None):
        """Lifts a hold. ``cose`` is the signature that a policy asks for."""
        params = {"address": _address(address), "reason": reason, **_given(cose=_base64(cose))}
        return self._do("lift_hold", params, _nothing)

    def set_verification(self, address, status, reason, *, cose=None):
        """Sets the verification status of a grain; ``retracted`` is final."""
        params = {"address": _address(address), "status": status, "reason": reason}
        params.update(_given(cose=_base64(cose)))
        return self._do("set_verification", params, _nothing)

    def contradict(self, address, reason, *, cose=None):
        """Marks a grain as contradicted: it is current no more."""
        params = {"address": _address(address), "reason": reason, **_given(cose=_base64(cose))}
        return self._do("contradict", params, _nothing)

    # Erasing

    def erase(self, address, reason, *, dry_run=False, now=False):
        """Erases one grain for good. With ``now`` it returns once nothing of it is on the disk.

        Returns ``counts``, ``holds``, ``scrubbed`` and the ``certificate`` (docs/rpc.md, erase).
        """
        params = {"address": _address(address), "reason": reason, "dry_run": dry_run, "now": now}
        return self._do("erase", params, long=now)

    def erase_user(self, user_id, reason, *, dry_run=False, now=False):
        """Erases every grain of a person, in every namespace, state and version."""
        params = {"user_id": user_id, "reason": reason, "dry_run": dry_run, "now": now}
        return self._do("erase_user", params, long=True)

    def sweep(self):
        """Erases what is due after a consent was withdrawn."""
        return self._do("sweep", {}, long=True)

    def subject_report(self, user_id, *, versions=False, cursor=None):
        """Lists the grains of a person: ``addresses`` and ``counts``; with ``versions`` the grains, in parts.

        Beyond 100,000 grains it is :class:`LimitError`; with ``versions``, ``next_cursor`` says where to go on.
        """
        params = {"user_id": user_id, "versions": versions, **_given(cursor=cursor)}
        return self._do("subject_report", params, long=True)

    # Reading

    def get(self, address):
        """Reads a grain by its address: :class:`Stored`, in any state. Raises :class:`NotFoundError`."""
        return self._do("get", {"address": address if type(address) is str else _address(address)}, Stored)

    def get_many(self, addresses):
        """Reads grains, in the same order, each as a dict; None where the session sees none."""
        params = {"addresses": [_address(address) for address in addresses]}
        return self._do("get_batch", params, _member("grains"), long=True)

    def exists(self, address):
        """True if the session sees a grain."""
        return self._do("exists", {"address": _address(address)}, _member("exists"))

    def resolve(self, prefix, *, limit=2):
        """The addresses that begin with 8 to 64 hex digits."""
        return self._do("resolve", {"prefix": prefix, "limit": limit}, _member("addresses"))

    def latest(self, subject, relation, *, namespace=None, as_of=None, valid_at=None):
        """The newest current grain of a subject and a relation, or None.

        ``as_of`` and ``valid_at`` are times: what was current, or true, then.
        """
        params = _given(namespace=namespace, as_of=moment("as_of", as_of), valid_at=moment("valid_at", valid_at))
        params.update(subject=subject, relation=relation)
        return self._do("latest", params, _latest)

    def history(self, address=None, *, subject=None, relation=None, namespace=None, as_of=None):
        """The versions of a grain, newest first: of an address, or of a subject and a relation."""
        params = _given(subject=subject, relation=relation, namespace=namespace, as_of=moment("as_of", as_of))
        if address is not None:
            params["address"] = _address(address)
        return self._do("history", params, _versions, long=True)

    def versions(self, address, towards, *, limit=50):
        """A chain in parts: from one version on, ``older`` or ``newer``."""
        params = {"address": _address(address), "towards": towards, "limit": limit}
        return self._do("versions", params, _versions)

    def page(
        self,
        where=None,
        *,
        text=None,
        vector=None,
        expand=None,
        sort=None,
        limit=50,
        cursor=None,
        include_superseded=False,
        explain=False,
        total=False,
    ):
        """One page of what a query finds (docs/rpc.md, query), with ``next_cursor``."""
        params = query_of(where, text, vector, expand, sort, include_superseded)
        params.update(limit=limit, explain=explain, total=total, **_given(cursor=cursor))
        return self._do("query", params, Page, long=True)

    # CAL

    def cal(
        self,
        query,
        params=None,
        *,
        evolve=False,
        now=None,
        format=None,
        where=None,
        expand=None,
        namespace=None,
        user_id=None,
        agent_id=None,
    ):
        """Runs a statement of CAL (docs/cal.md), with ``params`` for its ``$name``s. Returns the answer as a dict.

        ``evolve=True`` lets it write. ``format`` is that of whole grains and of contexts. Raises
        :class:`CalError` with ``position`` and ``suggestion``.
        """
        call = _given(
            params=params,
            now=moment("now", now),
            where=_where(where),
            expand=expand,
            namespace=namespace,
            user_id=user_id,
            agent_id=agent_id,
        )
        call.update(query=query, tier=1 if evolve else 0, **({"as": format} if format else {}))
        return self._do("cal", call, long=True)

    def assemble(
        self,
        intent=None,
        sources=None,
        *,
        budget=2000,
        about=None,
        params=None,
        format="sml",
        now=None,
        namespace=None,
        user_id=None,
    ):
        """Assembles a context for a model, of at most ``budget`` tokens: :class:`Context`, whose ``text`` is SML.

        ``sources`` are statements such as ``RECALL beliefs ABOUT $who`` by name, or one alone. Without them it
        is what has the words of ``intent``, and what is known of the subject ``about``: the first that is
        about both. An intent without words has the newest. Raises :class:`CalError`.
        """
        statement, bound = _assemble(intent, sources, budget, about, params or {})
        call = _given(now=moment("now", now), namespace=namespace, user_id=user_id)
        call.update(query=statement, params=bound, **{"as": format})
        return self._do("cal", call, Context, long=True)

    def prepare(self, query, params=None, *, evolve=False, terms=None, namespace=None):
        """The first of two phases: checks and plans a statement, and returns it with a ``token`` to execute it."""
        call = _given(params=params, terms=terms, namespace=namespace)
        call.update(query=query, tier=1 if evolve else 0)
        return self._do("prepare", call)

    def execute(self, token):
        """Runs what was prepared, once."""
        return self._do("execute", {"token": token}, long=True)

    def cal_convert(self, query):
        """A statement in text and in JSON; nothing runs."""
        return self._do("cal_convert", {"query": query})

    def cal_switch(self, to=None, reason=None):
        """How far CAL runs in this store: ``on``, ``reads`` or ``off``."""
        return self._do("cal_switch", _given(to=to, reason=reason))

    # Following links

    def neighbours(self, node, *, direction=None, relation=None, limit=50, include_superseded=False):
        """Grains with a triple, as edges from a node."""
        params = _given(direction=direction, relation=relation)
        params.update(node=node, limit=limit, include_superseded=include_superseded)
        return self._do("neighbours", params, long=True)

    def paths(
        self,
        start,
        end,
        *,
        max_hops=4,
        direction=None,
        relation=None,
        limit=50,
        include_superseded=False,
    ):
        """All the shortest paths between two nodes."""
        params = _given(direction=direction, relation=relation)
        params.update({"from": start, "to": end, "max_hops": max_hops, "limit": limit})
        params["include_superseded"] = include_superseded
        return self._do("paths", params, long=True)

    def ancestry(self, address, *, max_hops=16, limit=50, include_superseded=False):
        """The ancestors of a grain by ``derived_from``, level by level."""
        params = {"address": _address(address), "max_hops": max_hops, "limit": limit}
        params["include_superseded"] = include_superseded
        return self._do("ancestry", params, long=True)

    def children(self, address, *, limit=50, include_superseded=False):
        """The grains derived directly from a grain."""
        params = {"address": _address(address), "limit": limit}
        params["include_superseded"] = include_superseded
        return self._do("children", params, long=True)

    def related(self, address, *, kind=None, limit=50, include_superseded=False):
        """Cross-links of a grain, both ways."""
        params = {"address": _address(address), "limit": limit, **_given(kind=kind)}
        params["include_superseded"] = include_superseded
        return self._do("related", params, long=True)

    def thread(self, *, message=None, session_id=None, state=None, include_superseded=False):
        """The messages of a conversation, oldest first: of a message, a session, or a state."""
        params = _given(message=message, session_id=session_id, state=state)
        params["include_superseded"] = include_superseded
        return self._do("thread", params, long=True)

    # Policies and signatures

    def explain_policy(self, address, *, supersede=None, reason=None):
        """Who may replace a grain, and whether ``supersede`` by this one would be allowed."""
        params = _given(justification=reason)
        params["address"] = _address(address)
        if supersede is not None:
            params["supersede"] = _address(supersede)
        return self._do("policy_explain", params)

    def sign(self, grain, key, *, algorithm="ed25519"):
        """Signs a grain with a key of 32 bytes. Returns ``cose`` (base64), ``did`` and ``address``."""
        params = {**_as_input(grain), "key": _base64(key), "algorithm": algorithm}
        return self._do("sign", params)

    def verify_signature(self, cose):
        """What a signature comes to: ``verdict``, ``did``, ``reason``."""
        return self._do("verify_signature", {"cose": _base64(cose)})

    def prove(self, operation, address, key, *, grain=None, signed=None, algorithm="ed25519"):
        """Makes a signature that an invalidation policy asks for (docs/rpc.md, prove)."""
        params = _given(grain=None if grain is None else _as_grain(grain), signed=signed)
        params.update(operation=operation, address=_address(address), key=_base64(key), algorithm=algorithm)
        return self._do("prove", params)

    def disclose(self, of, hide):
        """A view of a grain in which these fields are hidden, each with its hash (OMS 10)."""
        given = {"grain": _as_grain(of)} if is_grain(of) or isinstance(of, Mapping) else {"address": _address(of)}
        return self._do("disclose", {**given, "hide": texts_of("hide", hide)})

    def encode(self, grain):
        """The ``address`` and ``blob`` (base64) of a grain, which is not stored."""
        return self._do("encode", {"grain": _as_grain(grain)})

    def decode(self, blob):
        """What the bytes of a grain say: ``address``, ``header``, ``encoding`` and ``grain``."""
        return self._do("decode", {"blob": _base64(blob)})

    def policy_show(self, preset=None):
        """The rules of the store, or those of a preset (docs/presets.md)."""
        return self._do("policy_show", _given(preset=preset))

    def policy_set(self, rules, reason, *, allow_weaker=False):
        """Adds rules to those of the store: a file of rules as text."""
        return self._do("policy_set", {"rules": rules, "reason": reason, "allow_weaker": allow_weaker})

    # Agents

    def owner(self, agent):
        """Whose an agent is: ``owner``, and ``other_claims``."""
        return self._do("owner", {"agent": agent})

    def capabilities(self, *, agent=None, name=None):
        """What an agent can do, or who can do something."""
        return self._do("capabilities", _given(agent=agent, name=name))

    def handoffs(self, session_id):
        """Who handed a conversation to whom, newest first."""
        return self._do("handoffs", {"session_id": session_id})

    # Keeping it in order

    def audit(self, *, after=None, limit=50, by=None, reads=False, to=None):
        """Entries of the audit log, oldest first, and the ``head`` of its chain."""
        params = {"limit": limit, "reads": reads, **_given(after=after, by=by, to=to)}
        return self._do("audit", params)

    def checkpoint(self):
        """Signs where the audit log ends: keep it elsewhere, and give it to ``verify`` later."""
        return self._do("checkpoint", {})

    def verify(self, *, full=False, checkpoint=None, signer=None, certificates=None):
        """Whether the store is sound: ``ok`` and ``problems``. ``full`` reads everything."""
        params = _given(checkpoint=checkpoint, signer=signer, certificates=certificates)
        return self._do("verify", {"full": full, **params}, long=True)

    def stats(self):
        """Figures of the store (docs/rpc.md, stats)."""
        return self._do("stats", {})

    def doctor(self):
        """Looks the store over: ``ok`` and ``findings``, each with advice."""
        return self._do("doctor", {}, long=True)

    def reindex(self):
        """Builds the index and the full text anew."""
        return self._do("reindex", {}, long=True)

    def compact(self):
        """Gives room back to the file system."""
        return self._do("compact", {}, long=True)

    def remove_vectors(self, model):
        """Removes all vectors of a model. Returns how many."""
        return self._do("remove_vectors", {"model": model}, _member("removed"), long=True)

    def rotate_keys(self, *, key_file=None, user_id=None):
        """Gives an encrypted store another key, from a file, or encrypts a person's grains anew."""
        file = None if key_file is None else path_of("key_file", key_file)
        return self._do("rotate_keys", _given(key_file=file, user_id=user_id), long=True)

    def backup(self, path):
        """Copies the store into a directory while others read and write."""
        return self._do("backup", {"path": path_of("path", path)}, long=True)

    # Leaving the store and coming into it

    def export_grains(self, path, *, where=None, user_id=None, compress=None, progress=None):
        """Writes grains into a portable ``.mg`` file: those of a ``where``, or of a person."""
        params = _given(where=where, subject=user_id, compress=compress)
        return self._long("export", {"path": path_of("path", path), **params}, progress)

    def import_grains(self, path, *, progress=None):
        """Takes the grains of ``.mg`` files, all or none."""
        return self._long("import", {"path": _paths(path)}, progress)

    def import_alf(self, path, *, dry_run=False, mirror=False, progress=None):
        """Takes an agent's archive (ALF) into the store."""
        params = {"path": path_of("path", path), "dry_run": dry_run, "mirror": mirror}
        return self._long("alf_import", params, progress)

    def export_alf(self, path, *, agent_id=None, agent_name=None, native=False, progress=None):
        """Writes an agent as an archive (ALF)."""
        params = {"path": path_of("path", path), "native": native, **_given(agent_id=agent_id, agent_name=agent_name)}
        return self._long("alf_export", params, progress)

    def migrate(self, format, path, *, namespace=None, user_id=None, dry_run=False, progress=None):
        """Takes an export of another tool (docs/migrate.md)."""
        params = {"format": format, "path": path_of("path", path), "dry_run": dry_run}
        params.update(_given(namespace=namespace, user_id=user_id))
        return self._long("migrate", params, progress)

    def alf_delta(self, path, since, *, agent_id=None, progress=None):
        """Writes what changed of an agent since a sequence number; ``delta`` is None if nothing did."""
        return self._long(
            "alf_delta", {"path": path_of("path", path), "since": since, **_given(agent_id=agent_id)}, progress
        )

    def alf_apply(self, path, *, dry_run=False, progress=None):
        """Applies a delta of ALF."""
        return self._long("alf_apply", {"path": path_of("path", path), "dry_run": dry_run}, progress)

    def alf_validate(self, path):
        """Whether an archive or a delta of ALF is ``valid``, with ``errors`` and ``warnings``."""
        return self._do("alf_validate", {"path": path_of("path", path)}, long=True)

    def alf_purge(
        self, reason, requested_by, *, ids=None, user_id=None, whole_agent=False, agent_id=None, dry_run=False
    ):
        """Removes records of an agent for good: exactly one of ``ids``, ``user_id`` and ``whole_agent``."""
        params = _given(ids=ids, user_id=user_id, agent_id=agent_id, whole_agent=whole_agent or None)
        params.update(reason=reason, requested_by=requested_by, dry_run=dry_run)
        return self._do("alf_purge", params, long=True)

    def ages_segments(self):
        """The segments of the audit log, each of them evidence of its own (docs/ages.md)."""
        return self._do("ages_segments", {}, long=True)

    def ages_export(self, path, *, segment=None, since=None, until=None, namespace=None, progress=None):
        """Writes Evidence Packs (AGES) of the audit log."""
        params = _given(
            segment=segment, namespace=namespace, since=moment("since", since), until=moment("until", until)
        )
        return self._long("ages_export", {"path": path_of("path", path), **params}, progress)

    def ages_verify(self, path):
        """The ``verdict`` on an Evidence Pack: ``VALID`` or ``TAMPERED``."""
        return self._do("ages_verify", {"path": path_of("path", path)}, long=True)

    def saga(self, operation, **params):
        """An operation on a SAGA document (docs/rpc.md, ``saga_*``), such as ``saga("export", wallet=...)``."""
        return self._do(f"saga_{operation}", params, long=True)

    def migrate_formats(self):
        """The formats that ``migrate`` reads: ``name``, ``reads``, ``beside``."""
        return self._do("migrate_formats", {}, _member("formats"))

    def _long(self, method, params, progress):
        if progress is not None:
            params["progress"] = True
        return self._do(method, params, long=True, progress=progress)


def _member(name):
    return lambda answer: answer[name]


def _nothing(_):
    return None


def _puts(answer):
    return [Put(put) for put in answer["results"]]


def _latest(answer):
    version = answer["version"]
    return None if version is None else Version(version)


def _versions(answer):
    return [Version(version) for version in answer["versions"]]


#: Members of the filter of a query that are times.
_TIMES = ("as_of", "time_from", "time_to", "valid_at")


def _where(where):
    """The filter of a query, with its times in milliseconds."""
    if not isinstance(where, Mapping) or where.keys().isdisjoint(_TIMES):
        return where
    return {name: moment(f"where.{name}", value) if name in _TIMES else value for name, value in where.items()}


def _paths(given):
    """The path of a file, or those of several."""
    if isinstance(given, (list, tuple)):
        return [path_of(f"path[{at}]", one) for at, one in enumerate(given)]
    return path_of("path", given)


def query_of(where, text, vector, expand, sort, include_superseded):
    params = _given(where=_where(where), text=text, vector=vector, expand=expand, sort=sort)
    params["include_superseded"] = include_superseded
    return params


def _assemble(intent, sources, budget, about, params):
    """A statement that assembles a context, and its parameters."""
    if isinstance(sources, str):
        sources = {"memory": sources}
    elif sources is not None and not isinstance(sources, Mapping):
        raise TypeError(f"sources: statements by name are needed, or one alone, not {type(sources).__qualname__}")
    if not sources:
        sources, params = {}, dict(params)
        subject = "" if about is None else " ABOUT $about"
        words = "" if intent is None else _words(intent)
        if words:
            sources["relevant"] = f"RECALL{subject} WHERE query = $intent"
            params["intent"] = words
        if about is not None:
            sources["known"] = f"RECALL{subject}"
            params["about"] = about
        if not sources and intent is None:
            raise TypeError("say what the context is for: an intent, about, or sources")
        if not sources:
            sources["newest"] = f"RECALL RECENT {_NEWEST}"
    parts = ", ".join(f"{name}: ({statement})" for name, statement in sources.items())
    budget = whole("budget", budget)
    # The context repeats it, and what it is for leaves room for what it has.
    intended = "" if intent is None else f"FOR {quoted(intent[: min(_INTENT, budget // 4)])} "
    return f"ASSEMBLE {intended}FROM {parts} BUDGET {budget} tokens", params


def _words(text):
    """The words of a question in natural language: signs that mean something in a search are none there."""
    words = "".join(" " if sign in '"*~' else sign for sign in text[:_SEARCHED]).split()
    return " ".join(word.lstrip("+-") for word in words)


__all__ = ["Calls", "Found", "quoted"]
