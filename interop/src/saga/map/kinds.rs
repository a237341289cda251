//! The kinds of items, as a table.

use crate::saga::kinds::Layer;

/// How items stand in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::saga) enum Form {
    /// Objects in a list; the member that names each.
    List(&'static str),
    /// Texts in a list; each is its own name.
    Texts,
    /// Objects in an object, by their names.
    Named,
    /// One object.
    Part,
}

/// Where a member of an item is in its grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A field of text.
    Text(&'static str),
    /// A field with a number from 0 to 1.
    Share(&'static str),
    /// A field with a count.
    Count(&'static str),
    /// A field with a time.
    Time(&'static str),
    /// A field with texts.
    Texts(&'static str),
    /// `goal_state`, by the words of tasks.
    GoalState,
    /// An entry of `context`, as text.
    Context,
}

/// What the subject of a grain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    None,
    Agent,
    /// The agent, as another says: the member has that one's address.
    AgentBy(&'static str),
}

/// A field that a grain must have, and an item may lack: its value is then made up, and noted as such.
#[derive(Debug, Clone, Copy)]
pub(super) enum Made {
    Text(&'static str, &'static str),
    /// The text of another member of the item, or a word.
    Member(&'static str, &'static str, &'static str),
    Number(&'static str, f64),
    Texts(&'static str, &'static str, &'static str),
}

/// Which grain an item becomes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// A State with the item's JSON.
    State,
    /// A State with the item's JSON beside it, where no index has it.
    Secret,
    /// A grain with fields for the members.
    Typed(&'static TypedGrain),
}

#[derive(Debug)]
pub(super) struct TypedGrain {
    pub(super) grain_type: &'static str,
    pub(super) relation: Option<&'static str>,
    pub(super) subject: Subject,
    /// The members of an item, and their places. The member of an item that is a text is named by nothing.
    pub(super) members: &'static [(&'static str, Place)],
    /// Where the name of an item is that stands beside it, not in it.
    pub(super) name: Option<&'static str>,
    pub(super) made: &'static [Made],
    /// The member with the time that the grain is of.
    pub(super) created: Option<&'static str>,
    /// Members that an item must have, and what they are where a grain was not made of one.
    pub(super) filled: &'static [(&'static str, Filled)],
}

/// What a member is that a grain does not tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Filled {
    Word(&'static str),
    /// When the grain was made.
    Created,
}

/// A kind of items.
#[derive(Debug)]
pub(in crate::saga) struct Kind {
    pub(in crate::saga) name: &'static str,
    pub(in crate::saga) layer: Layer,
    /// Where the items are in the layer.
    pub(in crate::saga) path: &'static str,
    pub(in crate::saga) form: Form,
    pub(super) target: Target,
}

/// The kind of layers without their items. Its path is not used.
pub(in crate::saga) const LAYER: Kind = state("layer", Layer::Identity, "", Form::Part);
/// The kind of envelopes.
pub(in crate::saga) const ENVELOPE: Kind = state("envelope", Layer::Identity, "", Form::Part);
/// The kind of members of a document that are not known.
pub(in crate::saga) const MEMBERS: Kind = state("members", Layer::Identity, "", Form::Part);
/// The kind of redaction manifests.
pub(in crate::saga) const MANIFEST_KIND: Kind = Kind {
    name: "manifest",
    layer: Layer::Identity,
    path: "",
    form: Form::Part,
    target: Target::Typed(&MANIFEST),
};

/// The kind of items of a vault.
pub(in crate::saga) const VAULT_ITEM: Kind = Kind {
    name: "vault-item",
    layer: Layer::Vault,
    path: "items",
    form: Form::List("itemId"),
    target: Target::Secret,
};

/// The kind of events.
pub(in crate::saga) const EVENT_KIND: Kind =
    typed("event", Layer::Memory, "episodic.events", Form::List("eventId"), &EVENT);
/// The kind of workflows.
pub(in crate::saga) const WORKFLOW_KIND: Kind =
    typed("workflow", Layer::Memory, "procedural.workflows", Form::List("name"), &WORKFLOW);
/// The kind of tasks.
pub(in crate::saga) const TASK_KIND: Kind =
    typed("task", Layer::TaskHistory, "recentTasks", Form::List("taskId"), &TASK);

/// The kind of consents, which are grains of their own.
pub(in crate::saga) const fn consent_kind() -> Kind {
    state("consent", Layer::Identity, "", Form::Part)
}

/// The kinds of items of layers.
pub(in crate::saga) const KINDS: [Kind; 16] = [
    state("short-term", Layer::Memory, "shortTerm", Form::Part),
    state("long-term", Layer::Memory, "longTerm", Form::Part),
    EVENT_KIND,
    typed("domain", Layer::Memory, "semantic.knowledgeDomains", Form::Texts, &DOMAIN),
    typed("expertise", Layer::Memory, "semantic.expertise", Form::Named, &EXPERTISE),
    WORKFLOW_KIND,
    typed("verified-skill", Layer::Skills, "verified", Form::List("name"), &VERIFIED),
    typed("reported-skill", Layer::Skills, "selfReported", Form::List("name"), &REPORTED),
    typed("endorsement", Layer::Skills, "endorsements", Form::List("skill"), &ENDORSEMENT),
    state("task-summary", Layer::TaskHistory, "summary", Form::Part),
    TASK_KIND,
    state("artifact", Layer::TaskHistory, "artifacts", Form::List("artifactId")),
    state("organization", Layer::Relationships, "organization", Form::Part),
    typed("principal", Layer::Relationships, "principals", Form::List("walletAddress"), &PRINCIPAL),
    typed("peer", Layer::Relationships, "peers", Form::List("walletAddress"), &PEER),
    VAULT_ITEM,
];

const fn state(name: &'static str, layer: Layer, path: &'static str, form: Form) -> Kind {
    Kind { name, layer, path, form, target: Target::State }
}

const fn typed(
    name: &'static str,
    layer: Layer,
    path: &'static str,
    form: Form,
    grain: &'static TypedGrain,
) -> Kind {
    Kind { name, layer, path, form, target: Target::Typed(grain) }
}

/// How sure a belief is of which nothing says it.
const UNSURE: Made = Made::Number("confidence", 0.5);

const EVENT: TypedGrain = TypedGrain {
    grain_type: "event",
    relation: None,
    subject: Subject::None,
    members: &[
        ("eventId", Place::Context),
        ("type", Place::Context),
        ("timestamp", Place::Time("timestamp_ms")),
        ("summary", Place::Text("content")),
        ("learnings", Place::Context),
        ("linkedTaskId", Place::Context),
        ("significance", Place::Share("importance")),
    ],
    name: None,
    made: &[Made::Member("content", "learnings", "an event without a summary")],
    created: Some("timestamp"),
    filled: &[("type", Filled::Word("interaction")), ("timestamp", Filled::Created)],
};

const DOMAIN: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("mg:knows"),
    subject: Subject::Agent,
    members: &[("", Place::Text("object"))],
    name: None,
    made: &[Made::Text("object", "a domain without a name"), UNSURE],
    created: None,
    filled: &[],
};

const EXPERTISE: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("mg:has_capability"),
    subject: Subject::Agent,
    members: &[("level", Place::Context), ("evidencedBy", Place::Context)],
    name: Some("object"),
    made: &[Made::Text("object", "something without a name"), UNSURE],
    created: None,
    filled: &[],
};

const WORKFLOW: TypedGrain = TypedGrain {
    grain_type: "workflow",
    relation: None,
    subject: Subject::None,
    members: &[
        ("name", Place::Text("trigger")),
        ("description", Place::Context),
        ("steps", Place::Texts("steps")),
        ("learnedFrom", Place::Context),
    ],
    name: None,
    made: &[Made::Texts("steps", "description", "name"), Made::Text("trigger", "unspecified")],
    created: None,
    filled: &[],
};

const VERIFIED: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("mg:has_capability"),
    subject: Subject::Agent,
    members: &[
        ("name", Place::Text("object")),
        ("category", Place::Context),
        ("verificationSource", Place::Context),
        ("verificationProof", Place::Context),
        ("completionCount", Place::Count("success_count")),
        ("firstVerified", Place::Context),
        ("lastVerified", Place::Context),
        ("confidence", Place::Share("confidence")),
    ],
    name: None,
    made: &[Made::Text("object", "a skill without a name"), UNSURE],
    created: Some("lastVerified"),
    filled: &[("verificationSource", Filled::Word("unknown"))],
};

const REPORTED: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("mg:has_capability"),
    subject: Subject::Agent,
    members: &[
        ("name", Place::Text("object")),
        ("category", Place::Context),
        ("addedAt", Place::Context),
    ],
    name: None,
    made: &[Made::Text("object", "a skill without a name"), UNSURE],
    created: Some("addedAt"),
    filled: &[],
};

const ENDORSEMENT: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("mg:has_capability"),
    subject: Subject::AgentBy("fromAgent"),
    members: &[
        ("skill", Place::Text("object")),
        ("fromAgent", Place::Context),
        ("fromHandle", Place::Context),
        ("comment", Place::Context),
        ("signature", Place::Context),
        ("timestamp", Place::Context),
    ],
    name: None,
    made: &[Made::Text("object", "a skill without a name"), UNSURE],
    created: Some("timestamp"),
    filled: &[],
};

const TASK: TypedGrain = TypedGrain {
    grain_type: "goal",
    relation: None,
    subject: Subject::None,
    members: &[
        ("taskId", Place::Context),
        ("title", Place::Text("description")),
        ("status", Place::GoalState),
        ("outcome", Place::Text("state_reason")),
        ("completedAt", Place::Context),
        ("organizationId", Place::Context),
        ("summary", Place::Context),
    ],
    name: None,
    made: &[
        Made::Member("description", "taskId", "a task without a title"),
        Made::Text("goal_state", "active"),
    ],
    created: Some("completedAt"),
    filled: &[("status", Filled::Word("in-progress"))],
};

const PRINCIPAL: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("saga:has_principal"),
    subject: Subject::Agent,
    members: &[
        ("walletAddress", Place::Text("object")),
        ("handle", Place::Context),
        ("authorityLevel", Place::Context),
        ("grantedAt", Place::Context),
    ],
    name: None,
    made: &[Made::Text("object", "a wallet without an address"), UNSURE],
    created: Some("grantedAt"),
    filled: &[("authorityLevel", Filled::Word("collaborator"))],
};

const PEER: TypedGrain = TypedGrain {
    grain_type: "belief",
    relation: Some("saga:peer_of"),
    subject: Subject::Agent,
    members: &[
        ("walletAddress", Place::Text("object")),
        ("agentHandle", Place::Context),
        ("relationship", Place::Context),
        ("interactionCount", Place::Count("success_count")),
        ("lastInteraction", Place::Context),
        ("trustScore", Place::Share("confidence")),
    ],
    name: None,
    made: &[Made::Text("object", "a wallet without an address"), UNSURE],
    created: Some("lastInteraction"),
    filled: &[("relationship", Filled::Word("peer"))],
};

const MANIFEST: TypedGrain = TypedGrain {
    grain_type: "observation",
    relation: None,
    subject: Subject::None,
    members: &[("appliedBy", Place::Text("observer_id"))],
    name: None,
    made: &[
        Made::Text("observer_id", "an organization without a name"),
        Made::Text("observer_type", "human"),
    ],
    created: Some("appliedAt"),
    filled: &[],
};

/// The words of tasks, and those of goals.
pub(super) const GOAL_STATES: [(&str, &str); 4] = [
    ("completed", "satisfied"),
    ("failed", "failed"),
    ("in-progress", "active"),
    ("cancelled", "suspended"),
];
