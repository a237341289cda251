//! The table of routes: what a path does, which method of docs/rpc.md it is, and what it takes. The router, the checks
//! of parameters and the OpenAPI document are made of it.
//!
//! No method is a route that reads or writes a file the request names (export, import, backup and the neighbours'
//! formats), or that takes a private key (sign, prove and SAGA's).

use axum::http::Method;

/// A route.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    /// The method of docs/rpc.md.
    pub(super) method: &'static str,
    pub(super) reach: Reach,
    /// Whether it may take long, so that few of its kind run at once.
    pub(super) is_long: bool,
    /// Whether it makes a grain: the answer is 201 with its place, unless it was there.
    pub(super) creates: bool,
    pub(super) memory: Memory,
    pub(super) tag: &'static str,
    /// What it does, for people.
    pub(super) about: &'static str,
    pub(super) params: &'static [Param],
    /// Members that every answer has.
    pub(super) answers: &'static [&'static str],
}

/// The verb of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Delete,
}

impl Verb {
    pub(super) fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Delete => Method::DELETE,
        }
    }
}

/// Whose routes they are. The store decides as well, by the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Of any token.
    Read,
    /// Of tokens that may write.
    Write,
    /// Of tokens that may write, if the statement writes; it says so in what it is given.
    Statement,
    /// Of tokens with the operator's rights.
    Operate,
}

/// What a route does to the memory, by the names of the GenAI conventions of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    Search,
    Update,
    Delete,
    /// Nothing that the conventions have a name for.
    Other,
}

/// A parameter.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) name: &'static str,
    /// Its name in the parameters of the method.
    pub(super) member: &'static str,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    pub(super) about: &'static str,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    /// A member of the object in the body.
    Body,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// 64 lowercase hex digits.
    Address,
    /// A whole number from 0.
    Count,
    /// Epoch milliseconds.
    Time,
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
    Object,
    Texts,
    Objects,
    /// A statement of CAL: a text, or an object of its JSON form.
    Statement,
    /// Base64.
    Bytes,
}

const fn path(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, member: name, place: Place::Path, kind, is_required: true, about }
}

const fn query(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, member: name, place: Place::Query, kind, is_required: false, about }
}

const fn body(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, member: name, place: Place::Body, kind, is_required: false, about }
}

impl Param {
    const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    const fn sent_as(self, member: &'static str) -> Self {
        Self { member, ..self }
    }
}

const ADDRESS: Param = path("address", Kind::Address, "the address of the grain");
const LIMIT: Param = query("limit", Kind::Count, "the most to answer");
const SUPERSEDED: Param =
    query("include_superseded", Kind::Flag, "whether superseded grains count");
const AS_OF: Param = query("as_of", Kind::Time, "what the store held to be current then");
const NAMESPACE: Param = query("namespace", Kind::Text, "the namespace, within that of the token");
const REASON: Param = body("reason", Kind::Text, "why; it goes into the audit log").required();
const PROOF: Param = body("cose", Kind::Bytes, "the signature that a policy asks for");
const DRY_RUN: Param = body("dry_run", Kind::Flag, "tells what it would do, and does nothing");
const NOW: Param = body("now", Kind::Flag, "answers once all of it has left the disk");
const OVERRIDE: Param = body(
    "override_malformed_retention",
    Kind::Flag,
    "takes a retention that cannot be read for none",
);
const DIRECTIONS: Kind = Kind::Word(&["out", "in", "both"]);
const SENSITIVITIES: Kind = Kind::Word(&["public", "internal", "pii", "phi"]);
const PROFILES: Kind = Kind::Word(&["extended", "standard", "lightweight"]);
const FORMATS: Kind = Kind::Word(&["sml", "markdown", "json", "yaml", "text", "triples", "toon"]);
const QUERY: Param = body("query", Kind::Statement, "the statement").required();
const PARAMS: Param = body("params", Kind::Object, "the values of $name");
const NOW_MS: Param = body("now", Kind::Time, "the time that the statement takes for now");
const AS: Param = body("as", FORMATS, "the format of the text");
const AUTO_TOON: Param = body("auto_toon", Kind::Flag, "takes toon where the budget is tight");
const OF_NAMESPACE: Param =
    body("namespace", Kind::Text, "the namespace for this call, within that of the token");
const OF_USER: Param =
    body("user_id", Kind::Text, "the user for this call; no other than the token's");
const OF_AGENT: Param = body("agent_id", Kind::Text, "the agent that acts");
const GRAIN: Param = body("grain", Kind::Object, "the grain, with the names of its fields");
const BLOB: Param = body("blob", Kind::Bytes, "the grain as bytes");
const COSE: Param = body("cose", Kind::Bytes, "the grain as a signed envelope");
const VECTORS: Param = body("vectors", Kind::Objects, "vectors of the grain");
const SENSITIVITY: Param = body("sensitivity", SENSITIVITIES, "what its header says at least");

/// A route of a verb and a path to a method.
const fn route(verb: Verb, path: &'static str, method: &'static str, tag: &'static str) -> Route {
    Route {
        verb,
        path,
        method,
        reach: Reach::Read,
        is_long: false,
        creates: false,
        memory: Memory::Other,
        tag,
        about: "",
        params: &[],
        answers: &[],
    }
}

const fn get(path: &'static str, method: &'static str, tag: &'static str) -> Route {
    route(Verb::Get, path, method, tag)
}

const fn post(path: &'static str, method: &'static str, tag: &'static str) -> Route {
    route(Verb::Post, path, method, tag)
}

impl Route {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn takes(self, params: &'static [Param]) -> Self {
        Self { params, ..self }
    }

    const fn answers(self, answers: &'static [&'static str]) -> Self {
        Self { answers, ..self }
    }

    const fn searches(self) -> Self {
        Self { memory: Memory::Search, ..self }
    }

    const fn writes(self) -> Self {
        Self { reach: Reach::Write, memory: Memory::Update, ..self }
    }

    const fn erases(self) -> Self {
        Self { reach: Reach::Write, memory: Memory::Delete, ..self }
    }

    const fn operates(self) -> Self {
        Self { reach: Reach::Operate, is_long: true, ..self }
    }

    const fn of_statement(self) -> Self {
        Self { reach: Reach::Statement, ..self }
    }

    const fn creates(self) -> Self {
        Self { creates: true, ..self }
    }

    /// Whether what an operator does by it changes no file.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.method, "verify" | "doctor")
    }

    /// Parameters of a place.
    pub(super) fn params_in(&self, place: Place) -> impl Iterator<Item = &'static Param> {
        self.params.iter().filter(move |param| param.place == place)
    }
}

const GRAINS: &str = "Grains";
const STATES: &str = "Policies and states";
const ASKING: &str = "Asking";
const LINKS: &str = "Links and conversations";
const PRIVACY: &str = "Privacy";
const UPKEEP: &str = "Audit and upkeep";
const FORMS: &str = "Forms without a store";

/// The paths of the two routes that stream instead, where they are asked to.
pub(super) const CAL_PATH: &str = "/v1/cal";

/// All routes that are one call of a method.
pub(super) const ROUTES: &[Route] = &[
    post("/v1/grains", "put", GRAINS)
        .writes()
        .creates()
        .about("Stores a grain: one of grain, blob and cose.")
        .takes(&[
            GRAIN,
            BLOB,
            COSE,
            body(
                "same_fact",
                Kind::Word(&["add", "keep", "supersede", "unique"]),
                "what to do when a current grain says the same",
            ),
            VECTORS,
            SENSITIVITY,
        ])
        .answers(&["address", "duplicate"]),
    post("/v1/grains/batch", "put_batch", GRAINS)
        .writes()
        .about("Stores several grains, all or none.")
        .takes(&[
            body("grains", Kind::Objects, "the grains"),
            body("blobs", Kind::Texts, "the grains as bytes"),
            body("cose", Kind::Texts, "the grains as signed envelopes"),
            body("entries", Kind::Objects, "blobs and envelopes in one list"),
            body("vectors", Kind::Objects, "a list of vectors for each"),
            SENSITIVITY,
        ])
        .answers(&["results"]),
    post("/v1/grains/get", "get_batch", GRAINS)
        .searches()
        .about("Reads several grains; null where the token sees none.")
        .takes(&[body("addresses", Kind::Texts, "their addresses").required()])
        .answers(&["grains"]),
    get("/v1/grains/{address}", "get", GRAINS)
        .searches()
        .about("Reads a grain, with its state, and its envelope if it is signed.")
        .takes(&[ADDRESS])
        .answers(&["address", "grain", "blob", "state"]),
    get("/v1/grains/{address}/exists", "exists", GRAINS)
        .about("Tells whether the token sees a grain.")
        .takes(&[ADDRESS])
        .answers(&["exists"]),
    get("/v1/addresses", "resolve", GRAINS)
        .about("Finds the addresses that begin with some digits.")
        .takes(&[
            query("prefix", Kind::Text, "8 to 64 hex digits").required(),
            LIMIT,
        ])
        .answers(&["addresses"]),
    post("/v1/grains/{address}/supersede", "supersede", GRAINS)
        .writes()
        .creates()
        .about("Replaces a grain by a new version, if its policy allows it.")
        .takes(&[
            path("address", Kind::Address, "the address of the grain that is replaced").sent_as("old"),
            GRAIN,
            BLOB,
            COSE,
            VECTORS,
            SENSITIVITY,
            body("justification", Kind::Text, "why"),
        ])
        .answers(&["address"]),
    post("/v1/grains/{address}/vectors", "embed", GRAINS)
        .writes()
        .about("Gives a grain vectors, in place of those it has of the same models.")
        .takes(&[ADDRESS, body("vectors", Kind::Objects, "the vectors").required()]),
    get("/v1/grains/{address}/history", "history", GRAINS)
        .searches()
        .about("The versions of a grain, newest first.")
        .takes(&[ADDRESS, query("cursor", Kind::Count, "how many to leave out"), LIMIT])
        .answers(&["versions"]),
    get("/v1/grains/{address}/versions", "versions", GRAINS)
        .searches()
        .about("A part of a long chain of versions, from this one on.")
        .takes(&[
            ADDRESS,
            query("towards", Kind::Word(&["older", "newer"]), "which way").required(),
            LIMIT,
        ])
        .answers(&["versions", "more"]),
    get("/v1/grains/{address}/policy", "policy_explain", STATES)
        .about("Who may replace a grain, and what that takes.")
        .takes(&[ADDRESS])
        .answers(&["policy"]),
    post("/v1/policy/explain", "policy_explain", STATES)
        .about("The policy of a grain that is given, and what a replacement by it would come to.")
        .takes(&[
            GRAIN,
            BLOB,
            COSE,
            body("address", Kind::Address, "a stored grain"),
            body("supersede", Kind::Address, "the grain it is to replace"),
            body("justification", Kind::Text, "why"),
        ])
        .answers(&["policy"]),
    post("/v1/grains/{address}/contradict", "contradict", STATES)
        .writes()
        .about("Marks a grain as contradicted.")
        .takes(&[ADDRESS, REASON, PROOF]),
    post("/v1/grains/{address}/verification", "set_verification", STATES)
        .writes()
        .about("Sets the verification status of a grain.")
        .takes(&[
            ADDRESS,
            body(
                "status",
                Kind::Word(&["unverified", "verified", "contested", "retracted"]),
                "the status",
            )
            .required(),
            REASON,
            PROOF,
        ]),
    post("/v1/grains/{address}/hold", "hold", STATES)
        .writes()
        .about("Puts a litigation hold on a grain.")
        .takes(&[ADDRESS, REASON, PROOF]),
    post("/v1/grains/{address}/lift-hold", "lift_hold", STATES)
        .writes()
        .about("Lifts a litigation hold.")
        .takes(&[ADDRESS, REASON, PROOF]),
    get("/v1/policy", "policy_show", STATES)
        .about("The rules of the store, or those of a preset.")
        .takes(&[query(
            "preset",
            Kind::Word(&["open", "gdpr", "hipaa", "sox", "ccpa", "lgpd"]),
            "a preset",
        )])
        .answers(&["preset", "settings", "rules"]),
    post("/v1/policy", "policy_set", STATES)
        .writes()
        .about("Adds rules to those of the store; for its operator.")
        .takes(&[
            body("rules", Kind::Text, "a file of rules as text, TOML or JSON").required(),
            REASON,
            body("allow_weaker", Kind::Flag, "whether rules may become weaker"),
        ])
        .answers(&["changed"]),
    post("/v1/query", "query", ASKING)
        .searches()
        .about("Finds grains by fields, words, vectors and links.")
        .takes(&[
            body("where", Kind::Object, "conditions that must all hold"),
            body("text", Kind::Text, "words to search for"),
            body("vector", Kind::Object, "looks for the nearest: model?, values"),
            body("expand", Kind::Object, "adds grains that are linked to the best answers"),
            body("sort", Kind::Word(&["newest", "oldest"]), "the order without text and vector"),
            body("limit", Kind::Count, "the most of a page"),
            body("cursor", Kind::Text, "where the next page begins"),
            body("include_superseded", Kind::Flag, "whether superseded grains count"),
            body("explain", Kind::Flag, "whether the plan is told"),
            body("total", Kind::Flag, "whether all matches are counted"),
        ])
        .answers(&["results", "total", "next_cursor"]),
    post(CAL_PATH, "cal", ASKING)
        .searches()
        .about("Runs a statement of CAL that reads. One that writes takes two calls: prepare, then execute.")
        .takes(&[
            QUERY,
            PARAMS,
            NOW_MS,
            AS,
            AUTO_TOON,
            body("where", Kind::Object, "what CAL has no words for, of a RECALL"),
            body("expand", Kind::Object, "as of query, of a RECALL"),
            OF_NAMESPACE,
            OF_USER,
            OF_AGENT,
        ])
        .answers(&["_cal"]),
    post("/v1/cal/prepare", "prepare", ASKING)
        .of_statement()
        .about("The first of two phases: plans a statement, says what it would change, and answers a token.")
        .takes(&[
            QUERY,
            PARAMS,
            NOW_MS,
            AS,
            body("tier", Kind::Count, "0 reads, 1 may write"),
            OF_NAMESPACE,
            OF_USER,
            OF_AGENT,
            body("terms", Kind::Object, "limits of the token"),
        ])
        .answers(&["token", "tier"]),
    post("/v1/cal/execute", "execute", ASKING)
        .of_statement()
        .about("The second phase: runs the statement of a token.")
        .takes(&[body("token", Kind::Object, "the token, as prepare answered it").required()])
        .answers(&["_cal"]),
    post("/v1/cal/convert", "cal_convert", ASKING)
        .about("A statement in text and in its JSON form; nothing runs.")
        .takes(&[QUERY])
        .answers(&["text", "json", "query_hash"]),
    get("/v1/cal/switch", "cal_switch", ASKING)
        .about("How far CAL is switched on.")
        .answers(&["cal"]),
    post("/v1/cal/switch", "cal_switch", ASKING)
        .writes()
        .about("Switches CAL on, to reads alone, or off; for the operator.")
        .takes(&[
            body("to", Kind::Word(&["on", "reads", "off"]), "how far").required(),
            REASON,
        ])
        .answers(&["cal"]),
    get("/v1/latest", "latest", ASKING)
        .searches()
        .about("The newest grain that is current, of a subject and a relation.")
        .takes(&[
            query("subject", Kind::Text, "the subject").required(),
            query("relation", Kind::Text, "the relation").required(),
            NAMESPACE,
            AS_OF,
            query("valid_at", Kind::Time, "what was true then"),
        ])
        .answers(&["version"]),
    get("/v1/history", "history", ASKING)
        .searches()
        .about("The versions of what is said of a subject under a relation, newest first.")
        .takes(&[
            query("subject", Kind::Text, "the subject").required(),
            query("relation", Kind::Text, "the relation").required(),
            NAMESPACE,
            AS_OF,
            query("cursor", Kind::Count, "how many to leave out"),
            LIMIT,
        ])
        .answers(&["versions"]),
    get("/v1/graph/neighbours", "neighbours", LINKS)
        .searches()
        .about("Triples as edges around a node.")
        .takes(&[
            query("node", Kind::Text, "a subject or an object").required(),
            query("direction", DIRECTIONS, "which way"),
            query("relation", Kind::Text, "one relation alone"),
            LIMIT,
            SUPERSEDED,
        ])
        .answers(&["edges", "more"]),
    get("/v1/graph/paths", "paths", LINKS)
        .searches()
        .about("The shortest paths between two nodes.")
        .takes(&[
            query("from", Kind::Text, "the first node").required(),
            query("to", Kind::Text, "the last node").required(),
            query("max_hops", Kind::Count, "at most 6"),
            query("direction", DIRECTIONS, "which way"),
            query("relation", Kind::Text, "one relation alone"),
            LIMIT,
            SUPERSEDED,
        ])
        .answers(&["paths", "more"]),
    get("/v1/grains/{address}/ancestry", "ancestry", LINKS)
        .searches()
        .about("What a grain was derived from, level by level.")
        .takes(&[ADDRESS, query("max_hops", Kind::Count, "levels"), LIMIT, SUPERSEDED])
        .answers(&["grains", "more"]),
    get("/v1/grains/{address}/children", "children", LINKS)
        .searches()
        .about("What was derived from a grain.")
        .takes(&[ADDRESS, LIMIT, SUPERSEDED])
        .answers(&["grains", "more"]),
    get("/v1/grains/{address}/related", "related", LINKS)
        .searches()
        .about("Cross-links of a grain, both ways.")
        .takes(&[ADDRESS, query("kind", Kind::Text, "one relation_type alone"), LIMIT, SUPERSEDED])
        .answers(&["links", "more"]),
    get("/v1/threads", "thread", LINKS)
        .searches()
        .about("A conversation: by one of session_id, message and state.")
        .takes(&[
            query("session_id", Kind::Text, "the session"),
            query("message", Kind::Address, "a message of it"),
            query("state", Kind::Address, "a state grain that remembers it"),
            SUPERSEDED,
        ])
        .answers(&["messages"]),
    get("/v1/agents/owner", "owner", LINKS)
        .searches()
        .about("Who owns an agent.")
        .takes(&[query("agent", Kind::Text, "the DID of the agent").required()])
        .answers(&["owner"]),
    get("/v1/agents/capabilities", "capabilities", LINKS)
        .searches()
        .about("What an agent can do, or who can do something: by one of agent and name.")
        .takes(&[
            query("agent", Kind::Text, "the DID of the agent"),
            query("name", Kind::Text, "a capability or a tool"),
        ])
        .answers(&["capabilities", "more"]),
    get("/v1/agents/handoffs", "handoffs", LINKS)
        .searches()
        .about("What agents handed to each other in a session.")
        .takes(&[query("session_id", Kind::Text, "the session").required()])
        .answers(&["handoffs", "more"]),
    post("/v1/grains/{address}/erase", "erase", PRIVACY)
        .erases()
        .about("Erases a grain for good.")
        .takes(&[ADDRESS, REASON, DRY_RUN, NOW, OVERRIDE])
        .answers(&["counts"]),
    get("/v1/users/{user_id}/report", "subject_report", PRIVACY)
        .about("What the store has of a person.")
        .takes(&[
            path("user_id", Kind::Text, "the person"),
            query("versions", Kind::Flag, "whether the grains themselves are answered"),
            query("cursor", Kind::Count, "where the next part begins"),
        ]),
    post("/v1/users/{user_id}/erase", "erase_user", PRIVACY)
        .erases()
        .about("Erases all that is of a person, for good.")
        .takes(&[
            path("user_id", Kind::Text, "the person"),
            REASON,
            DRY_RUN,
            NOW,
            OVERRIDE,
        ])
        .answers(&["counts"]),
    post("/v1/sweep", "sweep", PRIVACY)
        .erases()
        .about("Erases what is due with consents that were withdrawn; for the operator.")
        .answers(&["erased"]),
    post("/v1/grains/{address}/disclose", "disclose", PRIVACY)
        .about("A view of a grain with some fields hidden.")
        .takes(&[ADDRESS, body("hide", Kind::Texts, "names of the fields").required()])
        .answers(&["blob", "grain"]),
    get("/v1/audit", "audit", UPKEEP)
        .about("A part of the audit log, oldest first, or of the read log.")
        .takes(&[
            query("after", Kind::Count, "the sequence before the first entry"),
            LIMIT,
            query("by", Kind::Text, "entries of this actor alone"),
            query("reads", Kind::Flag, "whether it is the read log"),
            query("to", Kind::Count, "the sequence of the last entry that is looked at"),
        ])
        .answers(&["entries"]),
    get("/v1/audit/segments", "ages_segments", UPKEEP)
        .about("The segments of the audit log; for the operator.")
        .answers(&["segments"]),
    post("/v1/checkpoint", "checkpoint", UPKEEP)
        .writes()
        .about("Signs where the audit log ends, by the store's own key; for the operator.")
        .answers(&["entries", "head", "proof"]),
    post("/v1/verify", "verify", UPKEEP)
        .operates()
        .about("Tells whether the store is sound.")
        .takes(&[
            body("full", Kind::Flag, "whether every grain is hashed again"),
            body("checkpoint", Kind::Object, "what checkpoint once answered"),
            body("signer", Kind::Text, "the DID that must have signed it"),
            body("certificates", Kind::Objects, "of erasures: what came back is a problem"),
        ])
        .answers(&["ok", "problems"]),
    get("/v1/stats", "stats", UPKEEP)
        .about("Figures of the store; for the operator.")
        .takes(&[query("pages", Kind::Flag, "whether the use of pages is told")])
        .answers(&["grains", "disk_bytes"]),
    get("/v1/doctor", "doctor", UPKEEP)
        .operates()
        .about("Findings on the health of the store.")
        .answers(&["ok", "findings"]),
    post("/v1/reindex", "reindex", UPKEEP)
        .operates()
        .about("Builds the index and the full text again.")
        .answers(&["grains"]),
    post("/v1/compact", "compact", UPKEEP)
        .operates()
        .about("Gives room on the disk back.")
        .answers(&["truth_bytes_after"]),
    route(Verb::Delete, "/v1/models/{model}", "remove_vectors", UPKEEP)
        .operates()
        .about("Removes the vectors of a model.")
        .takes(&[path("model", Kind::Text, "the name of the model")])
        .answers(&["removed"]),
    post("/v1/encode", "encode", FORMS)
        .about("A grain as bytes, with its address; nothing is stored.")
        .takes(&[
            body("grain", Kind::Object, "the grain").required(),
            body("encoding", Kind::Word(&["msgpack", "cbor"]), "how it is encoded"),
            body("profile", PROFILES, "the class of devices whose limits it must keep to"),
            SENSITIVITY,
        ])
        .answers(&["address", "blob"]),
    post("/v1/decode", "decode", FORMS)
        .about("The grain that bytes are.")
        .takes(&[
            body("blob", Kind::Bytes, "the bytes").required(),
            body("profile", PROFILES, "the class of devices whose limits it must keep to"),
        ])
        .answers(&["address", "grain"]),
    post("/v1/signatures/verify", "verify_signature", FORMS)
        .about("What the signature of an envelope comes to.")
        .takes(&[body("cose", Kind::Bytes, "the envelope").required()])
        .answers(&["verdict"]),
    post("/v1/views/check", "check_view", FORMS)
        .about("Compares a disclosed view with its grain, or with revealed values.")
        .takes(&[
            body("view", Kind::Object, "the view"),
            body("view_blob", Kind::Bytes, "the view as bytes"),
            body("original", Kind::Object, "the grain it is of"),
            body("revealed", Kind::Object, "values of hidden fields"),
        ])
        .answers(&["original"]),
    post("/v1/views/restore", "restore_view", FORMS)
        .about("The grain of a view, by the values of all hidden fields.")
        .takes(&[
            body("view", Kind::Object, "the view"),
            body("view_blob", Kind::Bytes, "the view as bytes"),
            body("revealed", Kind::Object, "values of all hidden fields").required(),
        ])
        .answers(&["address", "grain"]),
    post("/v1/frames/write", "write_frames", FORMS)
        .about("Grains as a stream for transport (OMS 11.6).")
        .takes(&[
            body("entries", Kind::Texts, "blobs and envelopes").required(),
            body("profile", PROFILES, "the class of devices whose limits they must keep to"),
        ])
        .answers(&["frames"]),
    post("/v1/frames/read", "read_frames", FORMS)
        .about("The grains of a stream for transport.")
        .takes(&[
            body("frames", Kind::Bytes, "the stream").required(),
            body("profile", PROFILES, "the class of devices whose limits they must keep to"),
        ])
        .answers(&["entries"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_route_has_a_path_of_its_own_and_takes_what_its_path_names() {
        let all: BTreeSet<_> =
            ROUTES.iter().map(|route| (route.verb.method().to_string(), route.path)).collect();
        assert_eq!(all.len(), ROUTES.len());
        for route in ROUTES {
            let names: BTreeSet<_> = route.params.iter().map(|param| param.name).collect();
            assert_eq!(names.len(), route.params.len(), "{}", route.path);
            let in_path: Vec<_> = route.params_in(Place::Path).map(|param| param.name).collect();
            let named: Vec<_> = route
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            assert_eq!(in_path, named, "{}", route.path);
            let has_body = route.params_in(Place::Body).next().is_some();
            assert!(route.verb == Verb::Post || !has_body, "{}", route.path);
            assert!(!route.about.is_empty() && route.about.ends_with('.'), "{}", route.path);
        }
    }

    #[test]
    fn no_route_takes_a_file_of_the_server_or_a_private_key() {
        let never = [
            "export",
            "import",
            "backup",
            "migrate",
            "ages_export",
            "ages_verify",
            "alf_export",
            "alf_import",
            "alf_delta",
            "alf_apply",
            "alf_purge",
            "alf_validate",
            "saga_import",
            "saga_export",
            "saga_sign",
            "saga_redact",
            "saga_consent",
            "saga_agree",
            "saga_vault",
            "saga_validate",
            "sign",
            "prove",
            "rotate_keys",
            "open",
            "close",
            "session",
            "clock",
        ];
        for route in ROUTES {
            assert!(!never.contains(&route.method), "{}", route.method);
            for param in route.params {
                assert!(
                    !["path", "beside", "key", "wallet", "key_file"].contains(&param.name),
                    "{}",
                    route.path
                );
            }
        }
    }
}
