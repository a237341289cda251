//! Goals under protection: the transitions they allow without their policy, and the evidence required (OMS
//! 23.4, 23.5).

use grainstore_format::{EpochMs, Grain, GrainRef, GrainType, Sensitivity};

use super::same_did;

/// Fields that a transition may change; all others must stay as they were. Unlisted fields, of later
/// standards or of applications, are protected.
const MUTABLE_FIELDS: [&str; 16] = [
    "goal_state",
    // The reason of the transition, and the proof of its authorization.
    "state_reason",
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
    "satisfaction_evidence",
    "created_at",
    "confidence",
    "author_did",
    // Provenance.
    "source_type",
    "derived_from",
    "provenance_chain",
    "origin_did",
    "origin_namespace",
];
/// How far another clock may be ahead of the store's.
const MAX_AHEAD_MS: i64 = 5 * 60 * 1000;
/// Fields that the new version may omit, since the old one keeps binding it (OMS 23.5), but not change.
const INHERITED_FIELDS: [&str; 3] =
    ["invalidation_policy", "allowed_transitions", "evidence_required"];

/// An attempted change of a goal's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoalTransition<'a> {
    /// The new version of the goal.
    pub(crate) new: &'a Grain,
    /// The state of the new version.
    to: &'a str,
    /// True if no other field changes that identifies the goal, limits its visibility or describes it.
    preserves_rest: bool,
}

/// Who makes a transition, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maker<'m> {
    pub(crate) actor: Option<&'m str>,
    /// Who signed the new version.
    pub(crate) signer: Option<&'m str>,
    /// Whether it is the host itself, which answers for the names it gives.
    pub(crate) is_host: bool,
    pub(crate) now: EpochMs,
}

impl<'a> GoalTransition<'a> {
    /// Returns the state transition between `old` and `new`; `None` if the state stays.
    pub(crate) fn of(old: &GrainRef<'_>, new: &'a Grain) -> Option<Self> {
        let is_goal = new.grain_type() == GrainType::Goal;
        let to =
            new.text("goal_state").filter(|to| is_goal && old.text("goal_state") != Some(to))?;
        Some(Self { new, to, preserves_rest: preserves_rest(old, new) })
    }

    /// The same by this maker: what says that somebody else wrote it, or that it was made before the version it
    /// replaces or at a time to come, is for the full policy.
    pub(crate) fn by(self, old: &GrainRef<'_>, maker: &Maker<'_>) -> Self {
        let Self { new, .. } = self;
        let author = new.text("author_did");
        let is_known = |did: &str| {
            let known = [old.text("author_did"), maker.actor, maker.signer];
            maker.is_host || known.into_iter().flatten().any(|known| same_did(known, did))
        };
        let latest = maker.now.get().saturating_add(MAX_AHEAD_MS);
        let (from, at) = (old.int("created_at"), new.int("created_at"));
        let is_timely = from <= at && at <= Some(latest);
        self.keeping(author.is_none_or(is_known) && is_timely)
    }

    /// The same, where it also has to keep this.
    pub(crate) fn keeping(self, keeps: bool) -> Self {
        Self { preserves_rest: self.preserves_rest && keeps, ..self }
    }
}

/// The requirements of a goal for a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalTerms {
    /// True if the goal lists the transition, and the transition changes no protected field.
    pub(crate) allows: bool,
    /// Number of evidence grains that the transition requires; 0 for none.
    pub(crate) evidence_required: u64,
}

impl GoalTerms {
    /// Returns the requirements of a stored version of the goal; `None` for a grain of another type.
    pub(crate) fn of(stored: &GrainRef<'_>, transition: &GoalTransition<'_>) -> Option<Self> {
        if stored.grain_type() != GrainType::Goal {
            return None;
        }
        let GoalTransition { new, to, preserves_rest: keeps } = *transition;
        let allowed = stored.get("allowed_transitions").and_then(|states| states.as_array());
        let listed = allowed.is_some_and(|states| states.iter().any(|s| s.as_str() == Some(to)));
        let keeps = keeps
            && INHERITED_FIELDS
                .iter()
                .all(|name| new.get(name).is_none() || is_same(stored, new, name));
        let least = stored.int("evidence_required").and_then(|least| u64::try_from(least).ok());
        let evidence_required = match (to, least.unwrap_or(0)) {
            ("satisfied", least) => least,
            // One grain is enough to show that a goal cannot be reached.
            ("failed", least) => least.min(1),
            _ => 0,
        };
        Some(Self { allows: listed && keeps, evidence_required })
    }
}

/// Returns `true` if a new version agrees with the old one in all protected fields and in sensitivity.
fn preserves_rest(old: &GrainRef<'_>, new: &Grain) -> bool {
    let is_kept = |name: &str| !MUTABLE_FIELDS.contains(&name) && !INHERITED_FIELDS.contains(&name);
    let nothing_lost = old.iter().all(|(name, _)| !is_kept(name) || is_same(old, new, name));
    let nothing_new = new.fields().keys().all(|name| !is_kept(name) || old.get(name).is_some());
    nothing_lost && nothing_new && old.header().flags.sensitivity() == sensitivity(new)
}

fn is_same(stored: &GrainRef<'_>, new: &Grain, name: &str) -> bool {
    stored.get(name).map(|value| value.to_value()).as_ref() == new.get(name)
}

/// Returns the sensitivity of a grain: a header may state more than the tags.
fn sensitivity(grain: &Grain) -> Sensitivity {
    let told = grain.decoded_header().map(|header| header.flags.sensitivity());
    let of_tags = grain.texts("structural_tags").map(Sensitivity::of_tag).max();
    told.into_iter().chain(of_tags).max().unwrap_or(Sensitivity::Public)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use grainstore_format::fields::{FIELDS, FieldKind};
    use grainstore_format::{Map, PlainBlob, Value};

    use super::*;

    /// Fields that are never stored in a grain, and the type, which all versions share.
    const NEVER: [&str; 8] = [
        "type",
        "system_valid_to",
        "superseded_by",
        "contradicted",
        "access_count",
        "last_accessed_at",
        "verification_status",
        "_disclosure_of",
    ];

    /// One of two values of a kind.
    fn value(name: &str, kind: FieldKind, second: bool) -> Value {
        let text = |at: &str| Value::from(format!("{at}{}", u8::from(second)));
        let address = Value::from(if second { "a" } else { "b" }.repeat(64));
        let map = |name: &str| Value::Map(Map::from([(name.to_owned(), text("v"))]));
        match (name, kind) {
            ("content_refs", _) => Value::Array(vec![Value::Map(Map::from([
                ("uri".to_owned(), text("file:")),
                ("modality".to_owned(), Value::from("text")),
            ]))]),
            ("embedding_refs", _) => Value::Array(vec![Value::Map(Map::from([
                ("vector_id".to_owned(), text("v")),
                ("model".to_owned(), Value::from("m")),
                ("dimensions".to_owned(), Value::from(2_i64)),
            ]))]),
            ("related_to", _) => Value::Array(vec![Value::Map(Map::from([
                ("hash".to_owned(), address),
                ("relation_type".to_owned(), Value::from("supports")),
            ]))]),
            ("owner", _) => Value::Map(Map::from([
                ("type".to_owned(), Value::from("human")),
                ("name".to_owned(), text("n")),
            ])),
            ("created_at", _) => Value::from(5000 + i64::from(second)),
            (_, FieldKind::Float) => Value::from(if second { 0.25 } else { 0.5 }),
            (_, FieldKind::Int | FieldKind::Datetime | FieldKind::Byte) => {
                Value::from(1 + i64::from(second))
            }
            (_, FieldKind::Bool) => Value::from(second),
            (_, FieldKind::Map) => map("k"),
            (_, FieldKind::TextList) => Value::Array(vec![text("t")]),
            (_, FieldKind::MapList) => Value::Array(vec![map("k")]),
            (_, FieldKind::ByteList) => Value::Array(vec![Value::from(1 + i64::from(second))]),
            (_, FieldKind::BytesList) => Value::Array(vec![Value::Bytes(vec![u8::from(second)])]),
            (_, FieldKind::Parents) => Value::Array(vec![address]),
            (_, FieldKind::Text | FieldKind::TextOrMap | FieldKind::Any) => text("x"),
        }
    }

    fn goal(state: &str, field: Option<(&str, Value)>) -> Grain {
        let mut fields = Map::from([
            ("type".to_owned(), Value::from("goal")),
            ("description".to_owned(), Value::from("d")),
            ("goal_state".to_owned(), Value::from(state)),
            ("created_at".to_owned(), Value::from(1000_i64)),
            ("allowed_transitions".to_owned(), Value::Array(vec![Value::from("satisfied")])),
        ]);
        fields.extend(field.map(|(name, value)| (name.to_owned(), value)));
        Grain::from_fields(fields).unwrap()
    }

    fn allows(old: &Grain, new: &Grain) -> bool {
        let blob = old.encode(Default::default()).unwrap();
        let open = PlainBlob::new(blob.bytes(), &Default::default()).unwrap();
        let old = open.view();
        let transition = GoalTransition::of(&old, new).unwrap();
        GoalTerms::of(&old, &transition).unwrap().allows
    }

    /// A new field of the registry is protected until it is listed here and above.
    #[test]
    fn a_transition_changes_adds_and_drops_the_fields_that_are_free_and_no_other() {
        let mut tried = BTreeSet::new();
        for def in &FIELDS {
            let name = def.name;
            if NEVER.contains(&name) || !tried.insert(name) || name == "goal_state" {
                continue;
            }
            let is_on_goals = name != "content" || def.key == "content";
            assert!(is_on_goals, "{name}");
            let first = || Some((name, value(name, def.kind, false)));
            let second = || Some((name, value(name, def.kind, true)));
            let (is_free, may_go) =
                (MUTABLE_FIELDS.contains(&name), INHERITED_FIELDS.contains(&name));
            // Every goal has these.
            let is_required = ["description", "created_at"].contains(&name);
            let changed = allows(&goal("active", first()), &goal("satisfied", second()));
            assert_eq!(changed, is_free, "{name} changed");
            let kept = allows(&goal("active", first()), &goal("satisfied", first()));
            assert_eq!(kept, name != "allowed_transitions", "{name} kept");
            if !is_required && name != "allowed_transitions" {
                let added = allows(&goal("active", None), &goal("satisfied", second()));
                assert_eq!(added, is_free, "{name} added");
                let dropped = allows(&goal("active", first()), &goal("satisfied", None));
                assert_eq!(dropped, is_free || may_go, "{name} dropped");
            }
        }
        assert!(tried.len() > 140, "{} fields", tried.len());
        let strange = || Some(("acme:clearance", Value::from("none")));
        assert!(!allows(&goal("active", None), &goal("satisfied", strange())), "one of nobody's");
        assert!(!allows(&goal("active", strange()), &goal("satisfied", None)), "one of nobody's");
    }

    /// A change of the rules on transitions must be made here, too.
    #[test]
    fn what_is_free_is_what_the_standard_and_the_project_say() {
        let known: BTreeSet<_> = FIELDS.iter().map(|def| def.name).collect();
        assert!(MUTABLE_FIELDS.iter().chain(&INHERITED_FIELDS).all(|name| known.contains(name)));
    }

    #[test]
    fn a_header_that_says_more_than_the_tags_is_kept_as_well() {
        let old = goal("active", None).encode(Default::default()).unwrap();
        let mut raised = old.bytes().to_vec();
        let flags = raised.get_mut(1).unwrap();
        *flags |= 0xc0;
        let raised = Grain::decode(&raised).unwrap();
        assert!(!allows(&raised, &goal("satisfied", None)));
    }
}
