//! Removing the vectors of a model that serves no more, step by step on the writer's thread.

use crate::base::error::Result;
use crate::handle::store::Store;

impl Store {
    /// Removes every vector of a model, its saved graph and how far it had embedded the log. Gives how
    /// many vectors it removed.
    ///
    /// From the first step on nobody finds them; reads and writes go on between the steps, each of which
    /// removes a bounded number. A call that fails or is cut short has removed some: call again. The
    /// room in the file is used again, and given back by [`Store::compact`]. The audit
    /// log tells that it was begun.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where the model has no vectors; `ERR_CONFLICT` where they answer words and
    /// vectors whose model is not named, or where the store's embedder makes them; `ERR_IO`;
    /// `ERR_INTEGRITY`.
    pub fn remove_vectors(&self, model: &str) -> Result<u64> {
        let model = model.to_owned();
        let (number, space) = self.alone(move |writer| writer.dismiss(&model))?;
        let view = self.inner().view()?;
        self.inner().vectors().forget(&space, &view)?;
        drop(view);
        let (mut removed, mut behind) = (0_u64, Some(0));
        while let Some(row) = behind {
            let step = self.alone(move |writer| writer.remove_some(number, row))?;
            removed = removed.saturating_add(step.vectors);
            behind = step.behind;
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
        let (number, _) = store.alone(|writer| writer.dismiss("removed")).unwrap();
        let step = store.alone(move |writer| writer.remove_some(number, 0)).unwrap();
        assert!(step.behind.is_some() && (1..GRAINS).contains(&step.vectors), "{step:?}");
        drop(session);
        store.close();
        let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
        let stats = store.stats().unwrap();
        assert_eq!(stats.leaving_models, ["removed"]);
        assert_eq!(stats.vectors.len(), 1, "it is found no more");
        assert_eq!(stats.serving_model.as_deref(), Some("kept"));
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        let noticed = store.doctor().findings.into_iter().filter(|f| f.health == Health::Notice);
        assert_eq!(noticed.filter(|finding| finding.name == "vectors").count(), 1);
        // Somebody gives a vector of the model before it goes on: that one stays.
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
