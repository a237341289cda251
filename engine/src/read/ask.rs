//! CAL queries of a session.

use grainstore_cal::{ExecuteOptions, Response};

use crate::base::error::Result;
use crate::handle::session::Session;
use crate::read::memory::GivenGrains;

impl Session {
    /// Runs one CAL query that only reads, in text or JSON, with the store's current time as now.
    ///
    /// ```
    /// use grainstore::cal::Answer;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// let answer = session.ask(r#"RECALL beliefs ABOUT "alice" LIMIT 5"#)?;
    /// if let Answer::Grains(found) = &answer.answer {
    ///     assert_eq!(found.results.len(), 1);
    /// }
    /// let wrong = session.ask("RECALL belives").err().ok_or("it is no query")?;
    /// println!("{}: {} Try: {}", wrong.code(), wrong.message(), wrong.suggestion());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The CAL error with its code, position and suggestion.
    pub fn ask(&self, query: &str) -> Result<Response, grainstore_cal::Error> {
        self.ask_with(query.as_bytes(), &ExecuteOptions::at(self.now()))
    }

    /// Runs one CAL query, in text or JSON, with options: now, the tier it may use, its parameters, its
    /// format.
    ///
    /// Write quotas belong to the store and are shared by its sessions.
    ///
    /// ```
    /// use grainstore::cal::{ExecuteOptions, Params, Tier};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let mut params = Params::new();
    /// params.bind("drink", &"tea".into())?;
    /// let options = ExecuteOptions { params, tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
    /// let add = r#"ADD belief SET subject = "alice" SET relation = "prefers" SET object = $drink
    ///              SET confidence = 0.9 REASON "she said so""#;
    /// session.ask_with(add.as_bytes(), &options)?;
    /// assert_eq!(store.stats()?.grains, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::ask`]; refusals of the store keep their `ERR_` code: `ERR_DISABLED` if CAL is switched
    /// off, `ERR_LIMIT` and `ERR_POLICY` of the firewall and of rules about health data.
    pub fn ask_with(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
    ) -> Result<Response, grainstore_cal::Error> {
        self.call(query, options, None, None)
    }

    /// Counts an access to each grain that an answer gives: the results of a RECALL and what an ASSEMBLE shows
    /// (OMS 22.10). Counts, values, histories and grains that a budget left out are none.
    pub(crate) fn count_access(&self, answer: &Response, given: &GivenGrains) -> Result<()> {
        let inner = self.store().inner();
        if !inner.counts_access() {
            return Ok(());
        }
        let given = given.sorted();
        let view = self.view()?;
        for address in answer.answer.grains_given() {
            let known = given.binary_search_by_key(&address, |(address, _)| *address).ok();
            let known = known.and_then(|at| given.get(at)).map(|(_, sequence)| *sequence);
            let sequence = match known {
                Some(sequence) => Some(sequence),
                None => view.sequence_of(&address)?,
            };
            if let Some(sequence) = sequence {
                inner.touch(sequence);
            }
        }
        Ok(())
    }
}
