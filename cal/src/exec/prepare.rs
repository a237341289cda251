//! The first of two phases (CAL 18.2): a statement is parsed, checked and planned, and its target is looked
//! up. Nothing of it runs.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, Grain, Map};

use super::evolve::apply_set;
use super::revert::keep_invalidation_policy;
use super::{AdmittedStatement, ExecuteOptions, Executor, check_and_admit};
use crate::ast::{ParsedQuery, Statement, StatementType};
use crate::check::plan::{ExplainPlan, PlanWithLets, StatementPlan};
use crate::codes::Warning;
use crate::error::Result;
use crate::gate::AdmissionRequest;
use crate::memory::Memory;
use crate::print;
use crate::response::{FieldChange, PlanReport};
use crate::source::QuerySource;
use crate::tier::tier_of;
use crate::write_quotas::WriteQuotas;

/// A statement that is ready to run, from [`prepare`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preparation {
    /// The kind of statement.
    pub statement_type: StatementType,
    /// The tier it runs in.
    pub tier: u8,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// The statement in normal form.
    pub text: String,
    /// The plan.
    pub plan: PlanReport,
    /// The properties that a gate or a capability token decides by.
    pub admission: AdmissionRequest,
    /// The full address of its target.
    pub target: Option<ContentAddress>,
    /// The changes of a write: fields with old and new values, of an ADD the new values alone, of a REVERT
    /// the restored ones. Empty for reads.
    pub changes: Vec<FieldChange>,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
}

/// Prepares one query. Refusals that are known before anything is written are returned here; the errors of a
/// BATCH entry are reported when it runs.
///
/// ```
/// # use grainstore_cal::{AccessPlan, CancelHandle, Candidate, HashPrefix, Hit, HostInfo, Memory};
/// # use grainstore_cal::{MemoryError, NamedTemplate, PrefixMatch, Query, RecallStats};
/// # use grainstore_cal::{RecallVisitor, Score, SessionScope, TemplateSaveOutcome};
/// # use grainstore_format::{BeliefBuilder, Blob, ContentAddress, Encoding, EpochMs, Grain};
/// # use grainstore_format::{GrainRef, GrainState};
/// # type Outcome<T> = Result<T, MemoryError>;
/// # struct Notes(SessionScope, Vec<Blob>);
/// # fn no<T>() -> Outcome<T> { Err(MemoryError::new("ERR_NONE", "not in these notes", "")) }
/// # const NOW: EpochMs = EpochMs::new(1_768_471_200_000);
/// # fn notes() -> grainstore_format::Result<Notes> {
/// #     let belief = |object: &str| {
/// #         BeliefBuilder::new(NOW, "alice", "mg:prefers", object, 0.9)
/// #             .build()?.encode(Encoding::MessagePack)
/// #     };
/// #     Ok(Notes(SessionScope::default(), vec![belief("tea")?, belief("jazz")?]))
/// # }
/// # impl Memory for Notes {
/// #     fn scope(&self) -> &SessionScope { &self.0 }
/// #     fn recall(&self, query: &Query, cancel: &CancelHandle, visit: &mut RecallVisitor<'_>)
/// #         -> Outcome<RecallStats> {
/// #         let state = GrainState::default();
/// #         for blob in &self.1 {
/// #             cancel.check()?;
/// #             let Ok(grain) = GrainRef::new(blob.bytes()) else { return no() };
/// #             if query.matches(&blob.address(), &grain, &state, NOW) {
/// #                 let address = blob.address();
/// #                 let (grain, state) = (&grain, &state);
/// #                 let found = Candidate { address, grain, state, score: Score::STRUCTURAL };
/// #                 if visit(found).is_break() { break }
/// #             }
/// #         }
/// #         Ok(RecallStats { scanned: self.1.len() as u64, total: None })
/// #     }
/// #     fn matched_fields(&self, _: &Query, _: &[Hit], _: &CancelHandle)
/// #         -> Outcome<Vec<Vec<String>>> { no() }
/// #     fn locate(&self, _: &HashPrefix) -> Outcome<PrefixMatch> { Ok(PrefixMatch::Nothing) }
/// #     fn exists(&self, _: &ContentAddress) -> Outcome<bool> { no() }
/// #     fn get(&self, _: &ContentAddress) -> Outcome<Option<Hit>> { no() }
/// #     fn history(&self, _: &ContentAddress, _: usize) -> Outcome<Vec<Hit>> { no() }
/// #     fn thread(&self, _: &ContentAddress, _: usize, _: &CancelHandle)
/// #         -> Outcome<Vec<ContentAddress>> { no() }
/// #     fn explain(&self, _: &Query, _: &CancelHandle) -> Outcome<AccessPlan> {
/// #         Ok(AccessPlan { index: "none".to_owned(), estimated: 2, ..AccessPlan::default() })
/// #     }
/// #     fn describe(&self) -> Outcome<HostInfo> { no() }
/// #     fn templates(&self) -> Outcome<Vec<NamedTemplate>> { Ok(Vec::new()) }
/// #     fn save_template(&self, _: &NamedTemplate) -> Outcome<TemplateSaveOutcome> { no() }
/// #     fn add(&self, _: Grain, _: &str) -> Outcome<ContentAddress> { no() }
/// #     fn supersede(&self, _: &ContentAddress, _: Grain, _: &str)
/// #         -> Outcome<ContentAddress> { no() }
/// # }
/// use grainstore_cal::{CalOperation, ExecuteOptions, StatementType, prepare};
///
/// // `notes()` is a `Memory` that holds two beliefs about alice.
/// let options = ExecuteOptions::at(EpochMs::new(1_768_471_200_000));
/// let prepared = prepare(&notes()?, "recall beliefs limit 1", &options)?;
/// assert_eq!((prepared.statement_type, prepared.tier), (StatementType::Recall, 0));
/// assert_eq!(prepared.text, "RECALL beliefs | LIMIT 1");
/// assert_eq!(prepared.admission.operations, [CalOperation::Recall]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`execute`](super::execute), except those that only show when it runs.
pub fn prepare(
    memory: &dyn Memory,
    source: &str,
    options: &ExecuteOptions<'_>,
) -> Result<Preparation> {
    let source = QuerySource::read(source)?;
    let (statement, refused) =
        source.statement_for_execution().map_err(|error| source.mended(error))?;
    let (place, tier) = (statement.keyword_span(), tier_of(&statement, options.tier));
    let prepared = check_and_admit(memory, &statement, options, true).and_then(|admitted| {
        let AdmittedStatement { plan, warnings, .. } = admitted;
        let admission = AdmissionRequest::of(&statement, tier, &plan, true);
        // Preparing writes nothing, so an empty write counter will do.
        let writes = WriteQuotas::default();
        let run = Executor::new(memory, &source, &plan.plan, options, &writes);
        let (target, changes) = run.target_and_changes(&plan.plan)?;
        let PlanWithLets { lets, plan } = plan;
        let explained = match plan {
            StatementPlan::Explain(explained) => *explained,
            plan => ExplainPlan {
                statement: normal_form(&statement),
                statement_type: statement.statement_type(),
                tier,
                plan,
            },
        };
        Ok((run.plan_report(&explained, &lets)?, admission, target, changes, warnings))
    });
    let (plan, admission, target, changes, warnings) =
        prepared.map_err(|error| source.mended(source.locate(error.at_unless_memory(place))))?;
    Ok(Preparation {
        statement_type: statement.statement_type(),
        tier,
        query_hash: print::query_hash(&statement, &refused),
        text: statement.to_string(),
        plan,
        admission,
        target,
        changes,
        warnings,
    })
}

/// Returns a statement in normal form, without its LETs.
fn normal_form(statement: &Statement<'_>) -> String {
    match &statement.0 {
        ParsedQuery::Statement(request) => request.body.node.to_string(),
        ParsedQuery::Define(definition) => definition.node.to_string(),
    }
}

/// Payload fields that describe a version rather than its content.
const VERSION_FIELDS: [&str; 4] =
    ["created_at", "derived_from", "supersession_justification", "author_did"];

impl Executor<'_> {
    /// Returns the target of a statement, which must be replaceable, and the changes it would make.
    fn target_and_changes(
        &self,
        plan: &StatementPlan,
    ) -> Result<(Option<ContentAddress>, Vec<FieldChange>)> {
        Ok(match plan {
            StatementPlan::Supersede(plan) => {
                let old = self.supersede_target(plan)?;
                let address = old.address;
                let mut new = old.grain.clone().into_fields();
                apply_set(&mut new, plan.fields.clone());
                (Some(address), self.changes(Some(&old.grain), &new))
            }
            StatementPlan::Revert(plan) => {
                let target = self.resolve_target(&plan.target)?.address;
                let (before, head) = self.revert_versions(plan)?;
                let mut new = before.grain.into_fields();
                keep_invalidation_policy(&mut new, &head);
                (Some(target), self.changes(Some(&head.grain), &new))
            }
            StatementPlan::Add(plan) => (None, self.changes(None, &self.new_fields(plan)?)),
            StatementPlan::Define(plan) => {
                self.check_definition(plan)?;
                (None, Vec::new())
            }
            _ => (None, Vec::new()),
        })
    }

    /// Returns the fields in which a new version differs, in ascending order. Old values are left out if the
    /// gate does not allow the old grain as a whole.
    fn changes(&self, old: Option<&Grain>, new: &Map) -> Vec<FieldChange> {
        let shown = old.filter(|old| self.check_whole_grain(old).is_ok());
        let before = |name: &str| old.and_then(|old| old.get(name));
        let gone = old.into_iter().flat_map(|old| old.fields().keys());
        let names: BTreeSet<&String> = new.keys().chain(gone).collect();
        let differs = |name: &&String| {
            !VERSION_FIELDS.contains(&name.as_str()) && before(name) != new.get(*name)
        };
        let change = |name: &String| FieldChange {
            field: name.clone(),
            from: shown.and_then(|old| old.get(name)).cloned(),
            to: new.get(name).cloned(),
        };
        names.into_iter().filter(differs).map(change).collect()
    }
}
