//! Staging of vectors, and checks that they fit the existing spaces.

use crate::search::embed::space_mismatch;
use std::collections::BTreeSet;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;
use grainstore_index::vectors::{Space, Vector};

use super::{Principal, WritePlan};
use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::{PolicyAction, PolicyAttempt, PolicyRule, Proofs, RuleResult, decide};
use crate::search::embed::{Embedding, EmbeddingBatch};
use crate::state::audit::{AuditOperation, AuditRecord};

/// Maximum number of spaces in a store.
pub(crate) const MAX_SPACES: usize = 64;
/// Maximum number of models up to which limited sessions may add new ones, so that they cannot exhaust the
/// limit of the whole store.
const MAX_SCOPED_MODELS: usize = 8;

impl WritePlan<'_> {
    /// Stages vectors of a stored or staged grain. Vectors that it has already are ignored.
    ///
    /// # Errors
    /// Those of [`WritePlan::admit_spaces`]; `ERR_INVALIDATION_DENIED` for a grain that a policy or a hold
    /// protects against the caller (ruling 56): vectors decide its rank in searches.
    pub(super) fn stage_vectors(
        &mut self,
        address: &ContentAddress,
        sequence: Sequence,
        vectors: Vec<Embedding>,
        author: &Principal,
    ) -> Result<()> {
        let mut news = Vec::with_capacity(vectors.len());
        let mut replaces = false;
        for vector in vectors {
            let had = self.vector_of(sequence, &vector)?;
            if had.as_ref() != Some(&vector.vector) {
                replaces |= had.is_some();
                news.push(vector);
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        let rules = self.check_vectors(address, author)?;
        self.admit_spaces(&news)?;
        if replaces {
            let record = author.record(AuditOperation::Embed, vec![*address]);
            self.audit.push(AuditRecord { rules, ..record });
        }
        self.vectors.push((sequence, news));
        Ok(())
    }

    /// Refuses vectors for a grain that is protected against the caller; the operator, and a caller that its
    /// policy would let replace it, are allowed. Returns the rules that were applied.
    fn check_vectors(
        &mut self,
        address: &ContentAddress,
        author: &Principal,
    ) -> Result<Vec<&'static str>> {
        if author.is_store_operator() {
            return Ok(Vec::new());
        }
        let attempt = PolicyAttempt {
            act: PolicyAction::Supersede,
            now: self.now(),
            justification: author.reason.as_deref(),
            actor: author.actor.as_deref(),
            is_operator: false,
            // The signer of the grain has not agreed to any vector of it.
            proofs: &Proofs::default(),
            evidence: 0,
            locked_accepts_signature: false,
            may_review: false,
        };
        let gathered = self.protectors(address, None, None)?;
        let decision = decide(&attempt, &gathered.facts);
        if decision.refusal().is_none() {
            return Ok(decision.names());
        }
        let refused_by = gathered.refusing_protector(&decision).map(|(by, _)| by);
        let mut rules = decision.names();
        rules.push(PolicyRule::VectorsProtected.info().name);
        let mut results = decision.results(false, false);
        results.push(RuleResult::Fail);
        let record = author.record(AuditOperation::Embed, vec![*address]);
        self.audit.push(AuditRecord { rules, results, refused: true, refused_by, ..record });
        let what = format!("cannot give vectors to {address}");
        let rule = PolicyRule::VectorsProtected;
        let denied = self.denial_error(&what, rule, &decision, &gathered, author)?;
        Err(denied
            .with_hint("have the operator give them, in a session without a namespace and a user"))
    }

    /// Returns the stored or staged vector that this one would replace.
    fn vector_of(&self, at: Sequence, given: &Embedding) -> Result<Option<Vector>> {
        let same = |one: &&Embedding| one.space == given.space && one.chunk == given.chunk;
        let staged = self.vectors.iter().rev().filter(|(of, _)| *of == at);
        let staged = staged.flat_map(|(_, vectors)| vectors.iter().rev()).find(same);
        let staged =
            staged.or_else(|| self.staged_at(at)?.prepared.vectors.iter().rev().find(same));
        match staged {
            Some(staged) => Ok(Some(staged.vector.clone())),
            None => self.view.vector_at(at, &given.space, given.chunk),
        }
    }

    /// Stages a batch made by an embedder of the store, all or nothing. A grain that got a vector of the
    /// model in the meantime keeps it. Runs after all other members of its group.
    ///
    /// # Errors
    /// `ERR_EMBEDDER` if the batch before it was not written; those of [`WritePlan::admit_spaces`].
    pub(crate) fn stage_embedder_batch(&mut self, made: EmbeddingBatch) -> Result<()> {
        let EmbeddingBatch { space, is_leading: leads, from, to, vectors } = made;
        if !leads && self.view.serving_space()? != Some(&space) {
            // Another model replaced it in the meantime, and its vectors may be removed.
            return Ok(());
        }
        let written = self.view.embedded_through(space.model())?;
        if from > written {
            let message = "the vectors before these were not written";
            return Err(Error::new(ErrorKind::Embedder, message));
        }
        let (spaces, staged) = (self.spaces.len(), self.vectors.len());
        for (at, vector) in vectors {
            // The grain may have been erased while its vector was computed.
            if self.view.is_erased(at)? || self.has_vector(at, space.model())? {
                continue;
            }
            let vector = vec![vector];
            if let Err(error) = self.admit_spaces(&vector) {
                self.spaces.truncate(spaces);
                self.vectors.truncate(staged);
                return Err(error);
            }
            self.vectors.push((at, vector));
        }
        let to = to.max(written);
        self.embedder_progress.push((space.model().to_owned(), to));
        if leads { self.choose_serving_space(&space, to) } else { Ok(()) }
    }

    /// Chooses the serving space once the store's embedder has reached a sequence: its own if nothing is left
    /// to embed, or if there is no other. Until then a single other space, whose model hosts need not name,
    /// keeps serving.
    fn choose_serving_space(&mut self, own: &Space, to: u64) -> Result<()> {
        let (stored, appointed) = (self.view.spaces()?, self.view.designated_space()?);
        let all = || stored.values().chain(&self.spaces);
        if appointed == Some(own) || !all().any(|space| space == own) {
            return Ok(());
        }
        let is_complete = self.grains.is_empty() && to >= self.last_stored.get();
        let mut others = all().filter(|space| *space != own);
        let serving = match (appointed, others.next(), others.next()) {
            _ if is_complete => Some(own),
            (None, None, _) => Some(own),
            (None, Some(only), None) => Some(only),
            _ => None,
        };
        self.serving = serving.cloned();
        Ok(())
    }

    /// Returns `true` if the grain at a sequence has a stored or staged vector of this model.
    fn has_vector(&self, at: Sequence, model: &str) -> Result<bool> {
        let of_model = |vectors: &[Embedding]| vectors.iter().any(|one| one.space.model() == model);
        let staged = self.vectors.iter().any(|(given, vectors)| *given == at && of_model(vectors));
        Ok(staged || self.view.has_vector(at, model)?)
    }

    /// Stages vectors given for a stored grain.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; those of [`WritePlan::check_model_limit`] and [`WritePlan::admit_spaces`].
    pub(crate) fn stage_stored_vectors(
        &mut self,
        address: &ContentAddress,
        vectors: Vec<Embedding>,
        author: &Principal,
    ) -> Result<()> {
        self.check_model_limit(&vectors, author)?;
        let sequence = self.visible_or_error(address, author)?.sequence;
        self.all_or_nothing(|plan| plan.stage_vectors(address, sequence, vectors, author))
    }

    /// Refuses a new model of a session with a namespace or a user if the store has several already.
    ///
    /// # Errors
    /// `ERR_LIMIT`.
    pub(super) fn check_model_limit(
        &self,
        vectors: &[Embedding],
        author: &Principal,
    ) -> Result<()> {
        if vectors.is_empty() || author.viewer.is_unrestricted() {
            return Ok(());
        }
        let known = self.view.spaces()?.values().chain(&self.spaces).chain(&self.reserved_spaces);
        let mut models: BTreeSet<&str> = known.map(Space::model).collect();
        let before = models.len();
        models.extend(vectors.iter().map(|vector| vector.space.model()));
        if models.len() > before && models.len() > MAX_SCOPED_MODELS {
            let message = format!(
                "sessions with a namespace or a user bring no further model to a store that has vectors of \
                 {MAX_SCOPED_MODELS}"
            );
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("store the first vector of a model in a session without either"));
        }
        Ok(())
    }

    /// Checks vectors against the existing spaces, and stages new spaces. Those of the store's embedders
    /// exist from the start.
    ///
    /// # Errors
    /// `ERR_DIMENSION` if a model has vectors of another dimension or metric; `ERR_LIMIT` for too many
    /// spaces.
    pub(super) fn admit_spaces(&mut self, vectors: &[Embedding]) -> Result<()> {
        let stored = self.view.spaces()?;
        for Embedding { space, .. } in vectors {
            let taken = || stored.values().chain(&self.spaces);
            let of_model = |known: &&Space| known.model() == space.model();
            let (known, reserved) =
                (taken().find(of_model), self.reserved_spaces.iter().find(of_model));
            match known.or(reserved) {
                Some(other) if other != space => return Err(space_mismatch(other, space)),
                Some(_) if known.is_some() => continue,
                _ => {}
            }
            let is_free = |one: &&Space| taken().all(|known| known.model() != one.model());
            let kept = match reserved {
                Some(_) => 0,
                None => self.reserved_spaces.iter().filter(is_free).count(),
            };
            if taken().count() + kept >= MAX_SPACES {
                let message = format!("a store has vectors of {MAX_SPACES} models at most");
                return Err(Error::new(ErrorKind::Limit, message));
            }
            self.spaces.push(space.clone());
        }
        Ok(())
    }
}
