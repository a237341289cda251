//! Vectors in the specification: whoever may not replace a grain gives it no place in search (ruling 56).

use std::collections::BTreeSet;

use grainstore::embed::{Embedding, Metric};
use grainstore::{Session, SessionOptions};
use proptest::prelude::*;

use super::{Act, Brings, DENIED, Run, World};

/// Vectors that somebody gives: of which model, which of them, and whether the operator does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vectors {
    model: usize,
    vector: usize,
    by_operator: bool,
}

pub(super) fn vectors() -> impl Strategy<Value = Vectors> {
    (0_usize..2, 0_usize..3, any::<bool>()).prop_map(|(model, vector, by_operator)| Vectors {
        model,
        vector,
        by_operator,
    })
}

impl World {
    /// Whether somebody who brings nothing may give a grain vectors: as they may replace it, and a newer
    /// version that protects its lineage is asked as well.
    fn lets_embed(&self, at: usize) -> bool {
        let nothing = Brings::default();
        let later: BTreeSet<usize> = self.later_asked(at).collect();
        self.allows(Act::Supersede, at, &BTreeSet::new(), &nothing)
            && later.into_iter().all(|at| self.0[at].passes(Act::Supersede, &nothing))
    }
}

impl Run {
    pub(super) fn embed(&mut self, at: usize, given: &Vectors) -> Result<(), String> {
        let Vectors { model, vector, by_operator } = *given;
        let had = self.world.0[at].vectors.get(&model).copied();
        let is_news = had != Some(vector);
        let expected = match !is_news || by_operator || self.world.lets_embed(at) {
            true => "OK",
            false => DENIED,
        };
        let before = entries(&self.operator);
        let actor = (!by_operator).then(|| "did:web:agent".to_owned());
        let session = self.store.session(SessionOptions { actor, ..SessionOptions::default() });
        let outcome = session.embed(&self.addresses[at], vec![embedding(model, vector)]);
        if outcome.is_ok() {
            self.world.0[at].vectors.insert(model, vector);
            // A replacement is told, and nothing else that is done.
            let told = entries(&self.operator) - before;
            let replaced = u64::from(is_news && had.is_some());
            if told != replaced {
                return Err(format!("{told} entries of {replaced} replacements"));
            }
        }
        self.expect(at, outcome, expected)?;
        let models = self.operator.embedding_refs(&self.addresses[at]).unwrap();
        let models: BTreeSet<String> = models.into_iter().map(|one| one.model).collect();
        let known = self.world.0[at].vectors.keys().map(|model| format!("m{model}")).collect();
        if models == known { Ok(()) } else { Err(format!("{models:?} instead of {known:?}")) }
    }
}

fn entries(session: &Session) -> u64 {
    session.audit_head().unwrap().0
}

fn embedding(model: usize, vector: usize) -> Embedding {
    let mut values = vec![0.0; 3];
    values[vector] = 1.0;
    Embedding::new(&format!("m{model}"), Metric::Cosine, values).unwrap()
}
