//! Removal of the vectors of a model that no longer serves, in steps on the writer thread.

use crate::base::error::Result;
use crate::handle::store::Store;

impl Store {
    /// Removes every vector of a model, its saved graph, and its embedding progress. Returns the number of
    /// vectors removed.
    ///
    /// They are not found any more from the first step on; reads and writes continue between the steps, each
    /// of which removes a bounded number. An interrupted call has removed some: call again. The space in the
    /// file is reused, and freed by [`Store::compact`]. The start of the removal is audited.
    ///
    /// ```
    /// use grainstore::embed::{Embedding, Metric};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// for model in ["first", "second"] {
    ///     session.embed(&tea, vec![Embedding::new(model, Metric::Cosine, vec![0.6, 0.8])?])?;
    /// }
    /// assert_eq!(store.remove_vectors("second")?, 1);
    /// assert_eq!(session.embedding_refs(&tea)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if the model has no vectors; `ERR_CONFLICT` if it is the serving model, or that of the
    /// store's embedder; `ERR_IO`; `ERR_INTEGRITY`.
    pub fn remove_vectors(&self, model: &str) -> Result<u64> {
        let model = model.to_owned();
        let (number, space) = self.run_exclusive(move |writer| writer.retire_model(&model))?;
        let view = self.inner().view()?;
        self.inner().vectors().forget_space(&space, &view)?;
        drop(view);
        let (mut removed, mut behind) = (0_u64, Some(0));
        while let Some(row) = behind {
            let step = self.run_exclusive(move |writer| writer.remove_batch(number, row))?;
            removed = removed.saturating_add(step.vectors);
            behind = step.after;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use grainstore_format::{BeliefBuilder, EpochMs};

    use crate::search::embed::{Embedding, Metric};
    use crate::{Health, Offer, OpenOptions, SessionOptions, Store};

    const GRAINS: u64 = 1500;

    #[test]
    fn a_removal_that_was_cut_short_is_seen_and_goes_on() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let of = |model| Embedding::new(model, Metric::Cosine, vec![1.0, 0.5]).unwrap();
        let offers = (0..GRAINS).map(|number| {
            let name = format!("subject {number}");
            let belief = BeliefBuilder::new(EpochMs::new(1), name, "likes", "tea", 1.0).build();
            Offer::Grain(belief.unwrap()).with_vectors(vec![of("kept"), of("removed")])
        });
        let puts = session.put_batch(offers).unwrap();
        let (number, _) = store.run_exclusive(|writer| writer.retire_model("removed")).unwrap();
        let step = store.run_exclusive(move |writer| writer.remove_batch(number, 0)).unwrap();
        assert!(step.after.is_some() && (1..GRAINS).contains(&step.vectors), "{step:?}");
        drop(session);
        store.close().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
        let stats = store.stats().unwrap();
        assert_eq!(stats.leaving_models, ["removed"]);
        assert_eq!(stats.vectors.len(), 1, "it is found no more");
        assert_eq!(stats.serving_model.as_deref(), Some("kept"));
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        let noticed = store.doctor().findings.into_iter().filter(|f| f.health == Health::Notice);
        assert_eq!(noticed.filter(|finding| finding.name == "vectors").count(), 1);
        // A vector of the model that is given during the removal stays.
        let session = store.session(SessionOptions::default());
        let first = puts.first().unwrap().address();
        session.embed(&first, vec![of("removed")]).unwrap();
        assert_eq!(store.remove_vectors("removed").unwrap(), GRAINS - step.vectors);
        let stats = store.stats().unwrap();
        assert!(stats.leaving_models.is_empty());
        assert_eq!(stats.rows.get("vectors"), Some(&(GRAINS + 1)));
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        assert_eq!(store.remove_vectors("removed").unwrap(), 1);
    }
}
