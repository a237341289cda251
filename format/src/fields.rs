//! The OMS field registry: one table of every field of sections 6.1 to 6.11, and the nested maps of
//! 7.1, 7.2 and 14.2.
//!
//! Compaction, validation, JSON names and the documentation are driven by it; it depends on none of
//! them.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use crate::grain_type::GrainType;

use FieldKind::{
    Any, Bool, Byte, ByteList, BytesList, Datetime, Float, Int, Map, MapList, Parents, Text,
    TextList, TextOrMap,
};
use Section::{
    Action, Common, Consensus, Consent, Delegation, Event, Goal, Observation, Reasoning, State,
    Workflow,
};

/// The type of value a field holds, known for every field that [`by_name`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    Text,
    /// A float64. Integers are converted on input.
    Float,
    /// An integer that fits 64 signed bits.
    Int,
    /// Milliseconds since the epoch, as int64. JSON may give RFC 3339 text.
    Datetime,
    /// A boolean.
    Bool,
    /// An integer 0..=255.
    Byte,
    /// A map with any content.
    Map,
    /// A list of texts.
    TextList,
    /// A list of maps.
    MapList,
    /// A list of integers 0..=255.
    ByteList,
    /// A list of byte strings, base64 in JSON.
    BytesList,
    /// Text or a map: the object of a triple.
    TextOrMap,
    /// A list of addresses and citation maps: `derived_from` (OMS 27.5).
    Parents,
    /// Any value.
    Any,
}

impl FieldKind {
    /// Returns the kind in words, for messages and tables.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Text => "string",
            Float => "float64",
            Int => "int",
            Datetime => "int (epoch ms)",
            Bool => "bool",
            Byte => "uint8",
            Map => "map",
            TextList => "array of strings",
            MapList => "array of maps",
            ByteList => "array of uint8",
            BytesList => "array of byte strings",
            TextOrMap => "string or map",
            Parents => "array of addresses or citation maps",
            Any => "any value",
        }
    }
}

/// The part of OMS section 6 that defines a field. It decides on which grain types the field is typed.
///
/// ```
/// use grainstore_format::GrainType;
/// use grainstore_format::fields::Section;
///
/// assert!(Section::Delegation.covers(GrainType::Belief));
/// assert!(!Section::Goal.covers(GrainType::Belief));
/// assert_eq!(Section::Goal.number(), "6.7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// 6.1: all types, opaque ones included.
    Common,
    /// 6.2.
    Event,
    /// 6.3.
    State,
    /// 6.4.
    Workflow,
    /// 6.5.
    Action,
    /// 6.6.
    Observation,
    /// 6.7.
    Goal,
    /// 6.8.
    Consent,
    /// 6.9.
    Reasoning,
    /// 6.10.
    Consensus,
    /// 6.11: goals and beliefs that delegate.
    Delegation,
}

impl Section {
    /// Returns `true` if fields of this section are typed on grains of `grain_type`.
    #[must_use]
    pub fn covers(self, grain_type: GrainType) -> bool {
        match self {
            Common => true,
            Event => grain_type == GrainType::Event,
            State => grain_type == GrainType::State,
            Workflow => grain_type == GrainType::Workflow,
            Action => grain_type == GrainType::Action,
            Observation => grain_type == GrainType::Observation,
            Goal => grain_type == GrainType::Goal,
            Consent => grain_type == GrainType::Consent,
            Reasoning => grain_type == GrainType::Reasoning,
            Consensus => grain_type == GrainType::Consensus,
            Delegation => matches!(grain_type, GrainType::Goal | GrainType::Belief),
        }
    }

    /// Returns the number of the section in OMS, e.g. `6.7`.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Common => "6.1",
            Event => "6.2",
            State => "6.3",
            Workflow => "6.4",
            Action => "6.5",
            Observation => "6.6",
            Goal => "6.7",
            Consent => "6.8",
            Reasoning => "6.9",
            Consensus => "6.10",
            Delegation => "6.11",
        }
    }
}

/// One field of the registry, found [`by_name`] or [`by_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldDef {
    /// The full name, as in JSON.
    pub name: &'static str,
    /// The short key, as in payloads.
    pub key: &'static str,
    /// The type of value it holds.
    pub kind: FieldKind,
    /// The section that defines it.
    pub section: Section,
    /// `true` if the store keeps it and it never occurs in a blob (OMS 5.6, 28.3).
    pub index_layer: bool,
}

const fn field(
    name: &'static str,
    key: &'static str,
    kind: FieldKind,
    section: Section,
) -> FieldDef {
    FieldDef { name, key, kind, section, index_layer: false }
}

const fn index_field(
    name: &'static str,
    key: &'static str,
    kind: FieldKind,
    section: Section,
) -> FieldDef {
    FieldDef { name, key, kind, section, index_layer: true }
}

/// Every field of OMS 6.1 to 6.11, in the order of the standard. [`by_name`] finds one of them.
#[rustfmt::skip]
pub static FIELDS: [FieldDef; 151] = [
    field("type", "t", Text, Common),
    field("subject", "s", Text, Common),
    field("relation", "r", Text, Common),
    field("object", "o", TextOrMap, Common),
    field("confidence", "c", Float, Common),
    field("source_type", "st", Text, Common),
    field("created_at", "ca", Datetime, Common),
    field("temporal_type", "tt", Text, Common),
    field("valid_from", "vf", Datetime, Common),
    field("valid_to", "vt", Datetime, Common),
    field("system_valid_from", "svf", Datetime, Common),
    index_field("system_valid_to", "svt", Datetime, Common),
    field("context", "ctx", Map, Common),
    index_field("superseded_by", "sb", Text, Common),
    index_field("contradicted", "ct", Bool, Common),
    field("importance", "im", Float, Common),
    field("author_did", "adid", Text, Common),
    field("namespace", "ns", Text, Common),
    field("user_id", "user", Text, Common),
    field("structural_tags", "tags", TextList, Common),
    field("derived_from", "df", Parents, Common),
    field("consolidation_level", "cl", Int, Common),
    field("success_count", "sc", Int, Common),
    field("failure_count", "fc", Int, Common),
    field("provenance_chain", "pc", MapList, Common),
    field("origin_did", "odid", Text, Common),
    field("origin_namespace", "ons", Text, Common),
    field("content_refs", "cr", MapList, Common),
    field("embedding_refs", "er", MapList, Common),
    field("related_to", "rt", MapList, Common),
    field("_elided", "_e", Map, Common),
    field("_disclosure_of", "_do", Text, Common),
    field("invalidation_policy", "ip", Map, Common),
    field("supersession_justification", "sj", Text, Common),
    field("supersession_auth", "sa", BytesList, Common),
    field("owner", "own", Map, Common),
    field("category", "cat", Byte, Common),
    field("run_id", "rid", Text, Common),
    field("role", "role", Text, Common),
    index_field("access_count", "ac", Int, Common),
    index_field("last_accessed_at", "laa", Datetime, Common),
    field("timestamp_ms", "tms", Datetime, Common),
    field("observer_did", "obsdid", Text, Common),
    field("subject_did", "sdid", Text, Common),
    field("session_id", "sid2", Text, Common),
    field("entity_id", "eid", Text, Common),
    field("epistemic_status", "epstat", Text, Common),
    index_field("verification_status", "vstatus", Text, Common),
    field("requires_human_review", "rhr", Bool, Common),
    field("processing_basis", "pbasis", Text, Common),
    field("identity_state", "idst", Text, Common),
    field("license", "lic", Text, Common),
    field("trusted_timestamp", "tts", Map, Common),
    field("invalidation_type", "itype", Text, Common),
    field("invalidation_reason", "ireason", Text, Common),
    field("invalidation_initiator", "iinit", Text, Common),
    field("retention_policy", "rpol", Map, Common),
    field("recall_priority", "rpri", Text, Common),
    field("content", "content", Text, Event),
    field("consolidated", "consolidated", Bool, Event),
    field("content_blocks", "cblocks", MapList, Event),
    field("model_id", "mdl", Text, Event),
    field("stop_reason", "stopr", Text, Event),
    field("token_usage", "toku", Map, Event),
    field("parent_message_id", "pmid", Text, Event),
    field("plan", "plan", TextList, State),
    field("history", "history", MapList, State),
    field("steps", "steps", TextList, Workflow),
    field("trigger", "trigger", Text, Workflow),
    field("action_phase", "aphase", Text, Action),
    field("tool_name", "tn", Text, Action),
    field("input", "inp", Map, Action),
    field("content", "cnt", Any, Action),
    field("is_error", "iserr", Bool, Action),
    field("tool_call_id", "tcid", Text, Action),
    field("call_batch_id", "cbid", Text, Action),
    field("tool_type", "ttype", Text, Action),
    field("tool_version", "tver", Text, Action),
    field("execution_mode", "emode", Text, Action),
    field("code", "code", Text, Action),
    field("stdout", "out", Text, Action),
    field("stderr", "err2", Text, Action),
    field("exit_code", "xc", Int, Action),
    field("interpreter_id", "iid", Text, Action),
    field("error", "err", Text, Action),
    field("error_type", "etype", Text, Action),
    field("duration_ms", "dur", Int, Action),
    field("parent_task_id", "ptid", Text, Action),
    field("tool_description", "tdesc", Text, Action),
    field("input_schema", "isch", Map, Action),
    field("output_schema", "osch", Map, Action),
    field("strict", "strict", Bool, Action),
    field("observer_id", "oid", Text, Observation),
    field("observer_type", "otype", Text, Observation),
    field("frame_id", "fid", Text, Observation),
    field("sync_group", "sg", Text, Observation),
    field("observation_mode", "omode", Text, Observation),
    field("observation_scope", "oscope", Text, Observation),
    field("observer_model", "omdl", Text, Observation),
    field("compression_ratio", "ocmp", Float, Observation),
    field("description", "desc", Text, Goal),
    field("goal_state", "gs", Text, Goal),
    field("criteria", "crit", TextList, Goal),
    field("criteria_structured", "crs", MapList, Goal),
    field("priority", "pri", Int, Goal),
    field("parent_goals", "pgs", TextList, Goal),
    field("state_reason", "sr", Text, Goal),
    field("satisfaction_evidence", "se", TextList, Goal),
    field("progress", "prog", Float, Goal),
    field("delegate_to", "dto", Text, Goal),
    field("delegate_from", "dfo", Text, Goal),
    field("expiry_policy", "ep", Text, Goal),
    field("recurrence", "rec", Text, Goal),
    field("evidence_required", "evreq", Int, Goal),
    field("rollback_on_failure", "rof", TextList, Goal),
    field("allowed_transitions", "atr", TextList, Goal),
    field("depends_on", "depg", TextList, Goal),
    field("assigned_agent", "asgn", Text, Goal),
    field("expected_output", "expout", Text, Goal),
    field("output_grain", "outg", Text, Goal),
    field("deadline", "dline", Datetime, Goal),
    field("grantee_did", "gdid", Text, Consent),
    field("scope", "scope", TextList, Consent),
    field("is_withdrawal", "isw", Bool, Consent),
    field("basis", "basis", Text, Consent),
    field("jurisdiction", "jur", Text, Consent),
    field("prior_consent", "pcon", Text, Consent),
    field("witness_dids", "wdids", TextList, Consent),
    field("premises", "prem", TextList, Reasoning),
    field("conclusion", "conc", Text, Reasoning),
    field("inference_method", "imethod", Text, Reasoning),
    field("alternatives_considered", "altc", MapList, Reasoning),
    field("thinking_content", "think", Text, Reasoning),
    field("thinking_redacted", "tredact", Bool, Reasoning),
    field("statistical_context", "statctx", Map, Reasoning),
    field("software_environment", "swenv", Map, Reasoning),
    field("parameter_set", "params", Map, Reasoning),
    field("random_seed", "rseed", Int, Reasoning),
    field("participating_observers", "pobs", TextList, Consensus),
    field("threshold", "thold", Int, Consensus),
    field("agreement_count", "agcnt", Int, Consensus),
    field("dissent_count", "discnt", Int, Consensus),
    field("dissent_grains", "disgrn", TextList, Consensus),
    field("agreed_content", "agcon", Any, Consensus),
    field("authorized_namespaces", "ans", TextList, Delegation),
    field("authorized_types", "atypes", ByteList, Delegation),
    field("authorized_tools", "atools", TextList, Delegation),
    field("delegation_depth", "ddepth", Int, Delegation),
    field("delegation_expiry", "dexp", Datetime, Delegation),
    field("context_grains", "cgrains", TextList, Delegation),
    field("return_to", "retdid", Text, Delegation),
];

/// The fields that [`disclose`](crate::disclose) may elide from a view (OMS 10.2). No other field may be.
pub static ELIDABLE: [&str; 20] = [
    "subject",
    "object",
    "user_id",
    "namespace",
    "provenance_chain",
    "context",
    "structural_tags",
    "description",
    "criteria",
    "criteria_structured",
    "parent_goals",
    "state_reason",
    "satisfaction_evidence",
    "delegate_to",
    "delegate_from",
    "rollback_on_failure",
    "observer_id",
    "observer_model",
    "frame_id",
    "sync_group",
];

/// The fields of a nested map, which are compacted one level down (OMS 4.7).
///
/// ```
/// use grainstore_format::fields::NestedFields;
///
/// let relations = NestedFields::under("related_to");
/// let weight = relations.and_then(|fields| fields.by_name("weight"));
/// assert_eq!(weight.map(|field| field.key), Some("w"));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct NestedFields {
    /// The top-level field that lists such maps.
    pub parent: &'static str,
    /// The fields of each map.
    pub fields: &'static [FieldDef],
}

/// The three [`NestedFields`], of OMS 7.1, 7.2 and 14.2.
#[rustfmt::skip]
pub static NESTED: [NestedFields; 3] = [
    NestedFields {
        parent: "content_refs",
        fields: &[
            field("uri", "u", Text, Common),
            field("modality", "m", Text, Common),
            field("mime_type", "mt", Text, Common),
            field("size_bytes", "sz", Int, Common),
            field("checksum", "ck", Text, Common),
            field("metadata", "md", Map, Common),
        ],
    },
    NestedFields {
        parent: "embedding_refs",
        fields: &[
            field("vector_id", "vi", Text, Common),
            field("model", "mo", Text, Common),
            field("dimensions", "dm", Int, Common),
            field("modality_source", "ms", Text, Common),
            field("distance_metric", "di", Text, Common),
            field("chunk_index", "ci", Int, Common),
            field("chunk_text", "ct", Text, Common),
            field("chunk_strategy", "cs", Text, Common),
            field("chunk_overlap", "co", Int, Common),
        ],
    },
    NestedFields {
        parent: "related_to",
        fields: &[
            field("hash", "h", Text, Common),
            field("relation_type", "rl", Text, Common),
            field("weight", "w", Float, Common),
        ],
    },
];

/// The typed fields of an external citation (OMS 27.5). They are never compacted.
pub(crate) static CITATION: [FieldDef; 5] = [
    field("citation_type", "citation_type", Text, Common),
    field("identifier", "identifier", Text, Common),
    field("retrieved_at", "retrieved_at", Datetime, Common),
    field("content_hash", "content_hash", Text, Common),
    field("citation_role", "citation_role", Text, Common),
];

impl NestedFields {
    /// Returns the nested map of a top-level field, by the field's full name.
    #[must_use]
    pub fn under(parent: &str) -> Option<&'static Self> {
        NESTED.iter().find(|nested| nested.parent == parent)
    }

    /// Returns the field with this full name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&'static FieldDef> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the field with this short key.
    #[must_use]
    pub fn by_key(&self, key: &str) -> Option<&'static FieldDef> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// Returns the field with this full name on a grain of `grain_type`, of whichever section.
///
/// ```
/// use grainstore_format::GrainType;
/// use grainstore_format::fields::{self, FieldKind};
///
/// let content = |grain_type| fields::by_name("content", grain_type).map(|field| field.key);
/// assert_eq!(content(GrainType::Event), Some("content"));
/// assert_eq!(content(GrainType::Action), Some("cnt"));
/// let created_at = fields::by_name("created_at", GrainType::Belief);
/// assert_eq!(created_at.map(|field| field.kind), Some(FieldKind::Datetime));
/// ```
#[must_use]
pub fn by_name(name: &str, grain_type: GrainType) -> Option<&'static FieldDef> {
    BY_NAME.get(name).map(|both| both.for_type(grain_type))
}

/// Returns the field with this short key on a grain of `grain_type`.
///
/// `cnt` is a short key on actions only, `content` on all other types only.
///
/// ```
/// use grainstore_format::GrainType;
/// use grainstore_format::fields::by_key;
///
/// assert_eq!(by_key("s", GrainType::Belief).map(|field| field.name), Some("subject"));
/// assert_eq!(by_key("cnt", GrainType::Belief), None);
/// ```
#[must_use]
pub fn by_key(key: &str, grain_type: GrainType) -> Option<&'static FieldDef> {
    let def = *BY_KEY.get(key)?;
    let fits = def.name != TWO_KEY_NAME || by_name(def.name, grain_type) == Some(def);
    fits.then_some(def)
}

/// The one name with two short keys, defined in 6.2 and again in 6.5.
const TWO_KEY_NAME: &str = "content";

/// The definition of one field name, and a second one for actions if they differ.
struct NamedFields {
    def: &'static FieldDef,
    on_actions: Option<&'static FieldDef>,
}

impl NamedFields {
    fn for_type(&self, grain_type: GrainType) -> &'static FieldDef {
        match self.on_actions {
            Some(def) if grain_type == GrainType::Action => def,
            _ => self.def,
        }
    }
}

/// A table by name or key. Every field that is read is looked up here, so the hash is a fast one: nobody can add
/// entries to these tables.
type FieldTable<T> = HashMap<&'static str, T, FixedState>;

static BY_NAME: LazyLock<FieldTable<NamedFields>> = LazyLock::new(|| {
    let mut map: FieldTable<NamedFields> =
        HashMap::with_capacity_and_hasher(FIELDS.len(), FixedState::default());
    for def in &FIELDS {
        map.entry(def.name)
            .and_modify(|both| both.on_actions = Some(def))
            .or_insert(NamedFields { def, on_actions: None });
    }
    map
});

static BY_KEY: LazyLock<FieldTable<&'static FieldDef>> =
    LazyLock::new(|| FIELDS.iter().map(|def| (def.key, def)).collect());

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_unique_and_names_but_content() {
        let keys: HashSet<_> = FIELDS.iter().map(|f| f.key).collect();
        assert_eq!(keys.len(), FIELDS.len());
        let names: HashSet<_> = FIELDS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FIELDS.len() - 1);
    }

    #[test]
    fn every_field_is_found_by_its_key() {
        for def in &FIELDS {
            let types = GrainType::STANDARD.iter().filter(|t| by_key(def.key, **t) == Some(def));
            assert!(types.count() > 0, "{}", def.key);
        }
        for key in ["", "zz", "subjects and more", "s\0"] {
            assert!(by_key(key, GrainType::Belief).is_none(), "{key:?}");
        }
    }

    #[test]
    fn content_has_one_key_on_actions_and_another_elsewhere() {
        let key = |t| by_name("content", t).map(|f| f.key);
        assert_eq!(key(GrainType::Action), Some("cnt"));
        assert_eq!(key(GrainType::Event), Some("content"));
        assert_eq!(key(GrainType::Belief), Some("content"));
        assert!(by_key("cnt", GrainType::Belief).is_none());
        assert!(by_key("content", GrainType::Action).is_none());
        assert!(by_key("cnt", GrainType::Action).is_some());
    }
}
