//! areev behind the seam, as a program embeds it: one file, one facade with its executor, reads and
//! writes of facts by the typed methods, questions in CAL. Everything is left at its defaults: a
//! full sync with each commit, texts indexed in the same transaction, no embedder, no encryption.
//!
//! It has one connection, so that threads take turns. It gives no room back to the disk by itself.

use std::path::Path;

use areev_cal::executor::CalResultPayload;
use areev_cal::{AreevFacade, CalExecutor, CalExecutorConfig};
use areev_core::error::Hash;
use areev_core::format::deserialize::DeserializedGrain;
use areev_core::types;
use areev_store::{AddableDyn, Areev};
use compare_facts::{CONFIDENCE, Fact, NAMESPACE, Peer, Question, Result, Row, Told};

/// A memory with what answers questions about it.
pub(crate) struct Memory {
    facade: AreevFacade,
    executor: CalExecutor,
}

impl Peer for Memory {
    type Item = types::Fact;
    type Key = Hash;

    fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("memory.db");
        let store = Areev::open(path.to_str().ok_or("a directory that is no text")?)?;
        let facade = AreevFacade::with_session(store, Some(NAMESPACE.to_owned()), None);
        Ok(Self { facade, executor: CalExecutor::new(CalExecutorConfig::default()) })
    }

    fn item(fact: Fact) -> Result<types::Fact> {
        let mut item = types::Fact::new(&fact.subject, &fact.relation, &fact.object);
        item.common.confidence = CONFIDENCE;
        item.common.namespace = Some(NAMESPACE.to_owned());
        item.common.created_at = Some(fact.created_at);
        Ok(item)
    }

    fn key(fact: Fact) -> Result<Hash> {
        Ok(Self::item(fact)?.serialize_dyn()?.1)
    }

    fn put(&self, item: types::Fact) -> Result<()> {
        self.facade.with_store(|store| store.add(&item))?;
        Ok(())
    }

    fn put_batch(&self, items: Vec<types::Fact>) -> Result<()> {
        let items: Vec<&dyn AddableDyn> = items.iter().map(|item| item as _).collect();
        self.facade.with_store(|store| store.add_batch(&items))?;
        Ok(())
    }

    fn supersede(&self, old: &Hash, mut new: types::Fact) -> Result<Option<()>> {
        self.facade.with_store(|store| store.supersede(old, &mut new))?;
        Ok(Some(()))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn get(&self, key: &Hash) -> Result<Option<Fact>> {
        fact(&self.facade.with_store(|store| store.get(key))?).map(Some)
    }

    fn latest(
        &self,
        subject: &str,
        relation: Option<&str>,
        most: u32,
    ) -> Result<Option<Vec<Fact>>> {
        let most = usize::try_from(most)?;
        let found = self.facade.with_store(|m| m.recall(NAMESPACE, subject, relation, most))?;
        found.iter().map(fact).collect::<Result<_>>().map(Some)
    }

    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>> {
        let (words, most) = (words.join(" "), usize::try_from(most)?);
        let found = self
            .facade
            .with_store(|m| m.recall_hybrid(NAMESPACE, None, None, Some(&words), most, None))?;
        found.iter().map(|grain| Ok(Row::Fact(fact(grain)?))).collect::<Result<_>>().map(Some)
    }

    fn statement(question: &Question) -> Option<String> {
        Some(match question {
            Question::Recall([one, other]) => {
                format!("RECALL facts LIKE \"{one} {other}\" LIMIT 10")
            }
            Question::Text(subject) => {
                format!("RECALL facts WHERE subject = \"{subject}\" LIMIT 16 FORMAT sml")
            }
            Question::Assemble { subject, words: [one, other], each } => format!(
                "ASSEMBLE reply FOR \"the next reply\" \
                 FROM facts: (RECALL facts WHERE subject = \"{subject}\" LIMIT 16), \
                 found: (RECALL facts LIKE \"{one} {other}\" LIMIT {each}), \
                 recent: (RECALL facts RECENT {each}) \
                 BUDGET 2000 tokens PRIORITY facts > found > recent FORMAT sml"
            ),
        })
    }

    fn ask(&self, statement: &str) -> Result<Told> {
        match self.executor.execute(statement, &self.facade)?.result {
            CalResultPayload::Grains { grains, .. } => Ok(Told::Rows(grains.len())),
            CalResultPayload::Formatted { text, .. } => Ok(Told::Text(text)),
            other => Err(format!("an answer of another kind to {statement}: {other:?}").into()),
        }
    }

    fn compact(&mut self) -> Result<Option<()>> {
        Ok(None)
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// The fields of a grain, as text of its own.
fn fact(grain: &DeserializedGrain) -> Result<Fact> {
    let text = |name: &str| {
        grain.get_str(name).map(str::to_owned).ok_or_else(|| format!("a grain without its {name}"))
    };
    Ok(Fact {
        created_at: grain.get_i64("created_at").ok_or("a grain without its time")?,
        subject: text("subject")?,
        relation: text("relation")?,
        object: text("object")?,
    })
}
