//! Grains at random out of few words, so that every list has several and every list overlaps others:
//! all ten types and opaque ones, both encodings, fields at the odd places readers look for them.
//!
//! Knows what a grain may hold, and nothing of stores.

use std::collections::BTreeMap;

use grainstore::ContentAddress;
use grainstore::format::{Blob, EncodeOptions, Encoding, Grain, GrainType, Map, Value};

use crate::query::random::Random;

/// Where grains belong; nothing and the empty name are the shared partition.
pub(crate) const NAMESPACES: [Option<&str>; 9] = [
    None,
    Some(""),
    Some("a"),
    Some("a"),
    Some("a:b"),
    Some("a:b:c"),
    Some("ab"),
    Some("shared"),
    Some("shared:x"),
];
pub(crate) const SUBJECTS: [&str; 4] = ["alice", "bob", "tea", "sha256:x"];
pub(crate) const RELATIONS: [&str; 4] = ["prefers", "mg:knows", "works_at", "alice"];
pub(crate) const OBJECTS: [&str; 4] = ["tea", "Oslo", "", "alice"];
pub(crate) const TAGS: [&str; 8] = ["red", "blue", "green", "tea", "x:1", "x:2", "x:3", "x:4"];
pub(crate) const LINKS: [&str; 4] = ["contradicts", "supports", "depends_on", "similar"];
pub(crate) const DOMAINS: [&str; 6] =
    ["hc:patient_id", "fin:amount", "int:base_url", "int:timezone", "sci:blind", "shop:basket"];
/// Grains are created in one of these seconds.
pub(crate) const CREATED_MS: i64 = 1_700_000_000_000;
/// Times of their own, the ends of what 64 bits hold among them.
pub(crate) const TIMES: [i64; 14] = [
    i64::MIN,
    i64::MIN + 1,
    -(1 << 62),
    -1,
    0,
    1,
    CREATED_MS,
    CREATED_MS + 500,
    CREATED_MS + 2_000,
    CREATED_MS + 2_000,
    1 << 47,
    1 << 62,
    i64::MAX - 1,
    i64::MAX,
];

/// Somebody who writes grains.
#[derive(Debug)]
pub(crate) struct Author {
    pub(crate) random: Random,
    /// What addresses are taken from: grains stored before, and some that never were.
    pub(crate) known: Vec<ContentAddress>,
}

impl Author {
    pub(crate) fn new(seed: u64) -> Self {
        let nowhere = (0..3_u8).map(|byte| ContentAddress::from_bytes([byte; 32]));
        Self { random: Random::new(seed), known: nowhere.collect() }
    }

    /// A grain of any type, as it is stored.
    pub(crate) fn blob(&mut self) -> Blob {
        let mut fields = self.fields();
        let opaque = self.random.percent(4);
        if opaque {
            fields.insert("type".to_owned(), "belief".into());
            complete(&mut fields);
        }
        let grain = Grain::from_fields(fields).unwrap();
        let cbor = self.random.percent(30);
        let blob = grain.encode_with(&EncodeOptions {
            encoding: if cbor { Encoding::Cbor } else { Encoding::MessagePack },
            compress: !opaque && self.random.percent(4),
            ..EncodeOptions::default()
        });
        let blob = blob.unwrap();
        if opaque { disguised(blob) } else { blob }
    }

    /// The fields of a valid grain.
    pub(crate) fn fields(&mut self) -> Map {
        let grain_type = self.random.pick(&GrainType::STANDARD);
        let mut fields = Map::new();
        let seconds = i64::try_from(self.random.below(4)).unwrap();
        fields.insert("type".to_owned(), grain_type.name().into());
        fields.insert("created_at".to_owned(), (CREATED_MS + 1000 * seconds).into());
        self.place(&mut fields);
        self.say(&mut fields);
        self.refer(&mut fields);
        self.date(&mut fields);
        self.add_own(grain_type, &mut fields);
        self.add_domain(&mut fields);
        complete(&mut fields);
        fields
    }

    fn text(&mut self, fields: &mut Map, share: usize, name: &str, choices: &[&str]) {
        if self.random.percent(share) {
            fields.insert(name.to_owned(), self.random.pick(choices).into());
        }
    }

    fn place(&mut self, fields: &mut Map) {
        if let Some(namespace) = self.random.pick(&NAMESPACES) {
            fields.insert("namespace".to_owned(), namespace.into());
        }
        self.text(fields, 40, "user_id", &["u1", "u2"]);
        self.text(fields, 30, "session_id", &["s1", "s2"]);
        self.text(fields, 30, "run_id", &["r1", "r2", "s1"]);
        self.text(fields, 20, "role", &["user", "assistant"]);
        self.text(fields, 20, "source_type", &["user_explicit", "agent_inferred"]);
        self.text(fields, 20, "recall_priority", &["hot", "warm", "cold", "lukewarm"]);
        self.text(fields, 20, "epistemic_status", &["certain", "derived"]);
        let tags = if self.random.percent(3) { 20 } else { self.random.pick(&[0, 0, 1, 2, 4]) };
        if tags > 0 {
            let mut all: Vec<String> = (0..tags).map(|at| format!("tag {at}")).collect();
            let spoken = all.iter_mut().take(6);
            spoken.for_each(|tag| *tag = self.random.pick(&TAGS).to_owned());
            fields.insert("structural_tags".to_owned(), all.into());
        }
    }

    fn say(&mut self, fields: &mut Map) {
        self.text(fields, 60, "subject", &SUBJECTS);
        self.text(fields, 60, "relation", &RELATIONS);
        if self.random.percent(60) {
            fields.insert("object".to_owned(), self.object());
        }
        for name in ["confidence", "importance"] {
            if self.random.percent(50) {
                let share = self.random.pick(&[0.0, 0.25, 0.5, 1.0]);
                fields.insert(name.to_owned(), share.into());
            }
        }
    }

    pub(crate) fn object(&mut self) -> Value {
        let city = |value: Value| Value::Map(Map::from([("city".to_owned(), value)]));
        let nested = |value: Value| city(Value::Array(vec![city(value), "tea".into()]));
        match self.random.below(10) {
            0 => city("Oslo".into()),
            1 => city(1_i64.into()),
            2 => city(1.0.into()),
            3 => nested("Oslo".into()),
            4 => nested("alice".into()),
            _ => self.random.pick(&OBJECTS).into(),
        }
    }

    fn address(&mut self) -> Value {
        let from = self.known.len().saturating_sub(60);
        let recent = self.known.get(from..).unwrap();
        recent[self.random.below(recent.len())].to_string().into()
    }

    /// The same, where a prefix is allowed.
    fn free_address(&mut self) -> Value {
        let address = self.address();
        let digits = address.as_str().unwrap();
        if self.random.percent(30) { format!("sha256:{digits}").into() } else { address }
    }

    fn refer(&mut self, fields: &mut Map) {
        if self.random.percent(20) {
            let parents = vec![self.address(), self.address()];
            fields.insert("derived_from".to_owned(), Value::Array(parents));
            // A digest may derive from what says the same.
            fields.insert("consolidation_level".to_owned(), 1_i64.into());
        }
        for name in ["parent_message_id", "processing_basis"] {
            if self.random.percent(15) {
                fields.insert(name.to_owned(), self.free_address());
            }
        }
        self.text(fields, 5, "processing_basis", &["consent", "contract"]);
        if self.random.percent(15) {
            let list = vec![self.free_address(), self.free_address()];
            fields.insert("premises".to_owned(), Value::Array(list));
        }
        if self.random.percent(20) {
            let links = (0..1 + self.random.below(2)).map(|_| {
                let kind = Value::from(self.random.pick(&LINKS));
                let hash = ("hash".to_owned(), self.address());
                Value::Map(Map::from([hash, ("relation_type".to_owned(), kind)]))
            });
            let links = links.collect();
            fields.insert("related_to".to_owned(), Value::Array(links));
        }
    }

    fn date(&mut self, fields: &mut Map) {
        for (share, name) in
            [(40, "timestamp_ms"), (20, "valid_from"), (20, "valid_to"), (20, "system_valid_from")]
        {
            if self.random.percent(share) {
                fields.insert(name.to_owned(), self.random.pick(&TIMES).into());
            }
        }
    }

    /// Fields of the type, and at times one of another type at an odd place or in an odd form.
    fn add_own(&mut self, grain_type: GrainType, fields: &mut Map) {
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        match grain_type {
            GrainType::Event => {
                set("model_id", self.random.pick(&["m1", "m2"]).into());
            }
            GrainType::State => {
                let key = self.random.pick(&["id", "name"]).to_owned();
                let value = self.random.pick(&["desk", "lab"]).into();
                set("context", Value::Map(Map::from([(key, value)])));
            }
            GrainType::Workflow => {
                set("trigger", self.random.pick(&["morning", "alarm"]).into());
            }
            GrainType::Action => self.add_action(fields),
            GrainType::Observation => {
                set("observer_id", self.random.pick(&["o1", "o2"]).into());
                set("observer_type", self.random.pick(&["agent", "sensor"]).into());
            }
            GrainType::Goal => {
                let state = self.random.pick(&["active", "satisfied", "failed", "suspended"]);
                set("goal_state", state.into());
                set("assigned_agent", self.random.pick(&["o1", "o2"]).into());
                set("deadline", self.random.pick(&TIMES).into());
                if state == "suspended" {
                    set("depends_on", Value::Array(vec![self.free_address()]));
                }
            }
            GrainType::Reasoning => {
                set("inference_method", self.random.pick(&["deduction", "induction"]).into());
                set("conclusion", self.random.pick(&OBJECTS).into());
            }
            GrainType::Consensus => {
                set("threshold", i64::from(self.random.pick(&[1, 2, 3])).into());
                set("agreement_count", i64::from(self.random.pick(&[1, 2, 3])).into());
                let observers = self.random.pick(&[&["o1", "o2"][..], &["o1"], &["o3"]]);
                set("participating_observers", observers.to_vec().into());
            }
            GrainType::Consent => {
                let scope = self.random.pick(&[&["recall", "share"][..], &["share"], &["recall"]]);
                set("scope", scope.to_vec().into());
                set("subject_did", self.random.pick(&["did:x:1", "did:x:2"]).into());
                set("grantee_did", self.random.pick(&["did:x:1", "did:x:3"]).into());
            }
            GrainType::Belief | GrainType::Opaque(_) => {}
        }
        if grain_type != GrainType::Goal && self.random.percent(5) {
            // A list on goals; elsewhere nobody says what it is.
            fields.insert("depends_on".to_owned(), self.free_address());
        }
        if grain_type == GrainType::Belief && self.random.percent(5) {
            fields.insert("premises".to_owned(), self.free_address());
        }
        if grain_type == GrainType::Belief && self.random.percent(5) {
            let list = Value::Array(vec![self.free_address()]);
            fields.insert("parent_message_id".to_owned(), list);
        }
        self.text(fields, 5, "purpose", &["recall, share", "care"]);
    }

    fn add_action(&mut self, fields: &mut Map) {
        let tool = self.random.pick(&["search", "write"]);
        fields.insert("tool_name".to_owned(), tool.into());
        let phase = self.random.pick(&["definition", "call", "result", ""]);
        if !phase.is_empty() {
            fields.insert("action_phase".to_owned(), phase.into());
        }
        if phase == "result" {
            fields.insert("derived_from".to_owned(), Value::Array(vec![self.address()]));
            fields.insert("consolidation_level".to_owned(), 1_i64.into());
            fields.insert("tool_call_id".to_owned(), self.random.pick(&["c1", "c2"]).into());
        }
        if matches!(phase, "result" | "") {
            fields.insert("is_error".to_owned(), self.random.percent(40).into());
        }
    }

    /// Fields of domain profiles, at top level or in the context, by whole or short name.
    fn add_domain(&mut self, fields: &mut Map) {
        if !self.random.percent(40) {
            return;
        }
        let name = self.random.pick(&DOMAINS);
        let value = self.domain_value();
        let short = match name {
            "int:base_url" => "ib",
            "int:timezone" => "itz",
            other => other,
        };
        match self.random.below(3) {
            0 => drop(fields.insert(name.to_owned(), value)),
            at => {
                let key = if at == 1 { name } else { short }.to_owned();
                let context = fields.entry("context".to_owned());
                if let Value::Map(map) = context.or_insert(Value::Map(BTreeMap::new())) {
                    map.insert(key, value);
                }
            }
        }
    }

    pub(crate) fn domain_value(&mut self) -> Value {
        match self.random.below(8) {
            0 => true.into(),
            1 => 1_i64.into(),
            2 => 1.0.into(),
            3 => 2.5.into(),
            4 => "true".into(),
            5 => "1".into(),
            _ => self.random.pick(&["p1", "p2"]).into(),
        }
    }
}

/// Gives a grain the fields its type asks for, where it has none.
fn complete(fields: &mut Map) {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (grain_type, phase) = (text("type"), text("action_phase"));
    let map = || Value::Map(Map::new());
    let required: Vec<(&str, Value)> = match (grain_type.as_str(), phase.as_str()) {
        ("belief", _) => vec![
            ("subject", "somebody".into()),
            ("relation", "prefers".into()),
            ("object", "rice".into()),
            ("confidence", 0.5.into()),
        ],
        ("event", _) => vec![("content", "something was said".into())],
        ("state", _) => vec![("context", map())],
        ("workflow", _) => vec![("steps", vec!["one"].into()), ("trigger", "alarm".into())],
        ("action", "definition") => {
            vec![("tool_description", "does things".into()), ("input_schema", map())]
        }
        ("action", "call") => vec![("input", map())],
        ("action", _) => vec![("input", map()), ("content", "done".into())],
        ("goal", _) => vec![("description", "arrive".into())],
        ("consensus", _) => vec![("dissent_count", 0_i64.into())],
        ("consent", _) => vec![("is_withdrawal", false.into())],
        _ => Vec::new(),
    };
    for (name, value) in required {
        fields.entry(name.to_owned()).or_insert(value);
    }
}

/// The same grain under a type byte and a type name nobody knows.
fn disguised(blob: Blob) -> Blob {
    let mut bytes = blob.into_bytes();
    let typed = [&b"\xa1t\xa6belief"[..], b"\x61t\x66belief"];
    let place = bytes.windows(9).position(|window| typed.contains(&window)).unwrap();
    let name = place + 3;
    bytes[name..name + 6].copy_from_slice(b"gadget");
    bytes[2] = 0x42;
    Blob::from_bytes(bytes)
}
