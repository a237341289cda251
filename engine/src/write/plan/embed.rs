//! Vectors that come with grains: whether they fit the spaces there are.

use std::collections::BTreeSet;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;
use grainstore_index::vectors::{Space, Vector};

use super::{Author, Plan};
use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::{Act, Attempt, Proofs, Rule, decide};
use crate::search::embed::{Embedding, Ready};
use crate::state::audit::{AuditRecord, Operation};

/// Spaces of a store.
pub(crate) const MAX_SPACES: usize = 64;
/// Spaces up to which sessions with a namespace bring new ones: what one of them fills is full for all.
const MAX_SPACES_WITHIN: usize = 8;

impl Plan<'_> {
    /// Stages vectors of a grain that is stored already, or staged. Those it has already are nothing.
    ///
    /// # Errors
    /// As [`Plan::admit_spaces`]; `ERR_INVALIDATION_DENIED` for a grain that a policy or a hold protects
    /// against whoever gives them (ruling 56): its vectors keep its place in search.
    pub(super) fn embed(
        &mut self,
        address: &ContentAddress,
        sequence: Sequence,
        vectors: Vec<Embedding>,
        author: &Author,
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
            let record = author.record(Operation::Embed, vec![*address]);
            self.audit.push(AuditRecord { rules, ..record });
        }
        self.vectors.push((sequence, news));
        Ok(())
    }

    /// Refuses vectors for a grain that is protected against their giver: the operator may, and whom its
    /// policy would let replace it. The rules that were applied.
    fn check_vectors(
        &mut self,
        address: &ContentAddress,
        author: &Author,
    ) -> Result<Vec<&'static str>> {
        if author.speaks_for_store() {
            return Ok(Vec::new());
        }
        let attempt = Attempt {
            act: Act::Supersede,
            now: self.now(),
            justification: author.reason.as_deref(),
            actor: author.actor.as_deref(),
            is_operator: false,
            // Whoever signed the grain once has agreed to no vector of it.
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
        let refused_by = gathered.refuser(&decision).map(|(by, _)| by);
        let mut rules = decision.names();
        rules.push(Rule::VectorsProtected.row().name);
        let record = author.record(Operation::Embed, vec![*address]);
        self.audit.push(AuditRecord { rules, refused: true, refused_by, ..record });
        let what = format!("cannot give vectors to {address}");
        let rule = Rule::VectorsProtected;
        let denied = self.denied(&what, rule, &decision, &gathered, author)?;
        Err(denied
            .with_hint("have the operator give them, in a session without a namespace and a user"))
    }

    /// The vector that a grain has where this one is to go, stored or staged.
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

    /// Stages what an embedder of the store has made, all of it or nothing. A grain that was given a
    /// vector of the model meanwhile keeps it. It comes after all other members of its group.
    ///
    /// # Errors
    /// `ERR_EMBEDDER` where what was made before it is not written; as [`Plan::admit_spaces`].
    pub(crate) fn take_made(&mut self, made: Ready) -> Result<()> {
        let Ready { space, leads, from, to, vectors } = made;
        if !leads && self.view.serving()? != Some(&space) {
            // Another model took its place meanwhile, and its vectors may be removed.
            return Ok(());
        }
        let written = self.view.embedded_to(space.model())?;
        if from > written {
            let message = "the vectors before these were not written";
            return Err(Error::new(ErrorKind::Embedder, message));
        }
        let (spaces, staged) = (self.spaces.len(), self.vectors.len());
        for (at, vector) in vectors {
            // It may have been erased while its vector was made.
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
        self.embedded.push((space.model().to_owned(), to));
        if leads { self.appoint(&space, to) } else { Ok(()) }
    }

    /// Decides which space serves once the store's embedder has come to this place of the log: its own
    /// where nothing is left to embed, or where there is no other. Until then a single other one, of
    /// which hosts need not name the model, goes on serving.
    fn appoint(&mut self, own: &Space, to: u64) -> Result<()> {
        let (stored, appointed) = (self.view.spaces()?, self.view.appointed()?);
        let all = || stored.values().chain(&self.spaces);
        if appointed == Some(own) || !all().any(|space| space == own) {
            return Ok(());
        }
        let is_complete = self.grains.is_empty() && to >= self.stored.get();
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

    /// Whether the grain at a place has a vector of this model, stored or staged.
    fn has_vector(&self, at: Sequence, model: &str) -> Result<bool> {
        let of_model = |vectors: &[Embedding]| vectors.iter().any(|one| one.space.model() == model);
        let staged = self.vectors.iter().any(|(given, vectors)| *given == at && of_model(vectors));
        Ok(staged || self.view.has_vector(at, model)?)
    }

    /// Stages vectors that are given for a stored grain.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; as [`Plan::check_room`] and [`Plan::admit_spaces`].
    pub(crate) fn embed_stored(
        &mut self,
        address: &ContentAddress,
        vectors: Vec<Embedding>,
        author: &Author,
    ) -> Result<()> {
        self.check_room(&vectors, author)?;
        let sequence = self.seen(address, author)?.sequence;
        self.all_or_nothing(|plan| plan.embed(address, sequence, vectors, author))
    }

    /// Refuses new spaces of a session with a namespace or a user where the store has some already.
    ///
    /// # Errors
    /// `ERR_LIMIT`.
    pub(super) fn check_room(&self, vectors: &[Embedding], author: &Author) -> Result<()> {
        if vectors.is_empty() || author.viewer.is_everyone() {
            return Ok(());
        }
        let known = self.view.spaces()?.values().chain(&self.spaces).chain(&self.reserved);
        let mut models: BTreeSet<&str> = known.map(Space::model).collect();
        let before = models.len();
        models.extend(vectors.iter().map(|vector| vector.space.model()));
        if models.len() > before && models.len() > MAX_SPACES_WITHIN {
            let message = format!(
                "sessions with a namespace or a user bring no further model to a store that has vectors of \
                 {MAX_SPACES_WITHIN}"
            );
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("store the first vector of a model in a session without either"));
        }
        Ok(())
    }

    /// Checks vectors against the spaces there are, and stages those that are new. Those of the store's
    /// embedders are there from the start.
    ///
    /// # Errors
    /// `ERR_DIMENSION` where a model has vectors of another length, or compared in another way;
    /// `ERR_LIMIT` for a space too many.
    pub(super) fn admit_spaces(&mut self, vectors: &[Embedding]) -> Result<()> {
        let stored = self.view.spaces()?;
        for Embedding { space, .. } in vectors {
            let taken = || stored.values().chain(&self.spaces);
            let of_model = |known: &&Space| known.model() == space.model();
            let (known, reserved) = (taken().find(of_model), self.reserved.iter().find(of_model));
            match known.or(reserved) {
                Some(other) if other != space => return Err(mixed(other, space)),
                Some(_) if known.is_some() => continue,
                _ => {}
            }
            let is_free = |one: &&Space| taken().all(|known| known.model() != one.model());
            let kept = match reserved {
                Some(_) => 0,
                None => self.reserved.iter().filter(is_free).count(),
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

/// Why vectors are not of a space that is known.
pub(crate) fn mixed(known: &Space, given: &Space) -> Error {
    let told =
        |space: &Space| format!("{} numbers by {}", space.dimension(), space.metric().name());
    let message = format!(
        "vectors of {} are compared over {} here, not over {}",
        known.model(),
        told(known),
        told(given)
    );
    Error::new(ErrorKind::Dimension, message)
}
