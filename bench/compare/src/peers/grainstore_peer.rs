//! Grainstore behind the seam: the only file here that calls the engine.

use std::ops::ControlFlow;
use std::path::Path;

use grainstore::cal::{
    CancelHandle, Candidate, Memory, Predicate, Query, Reach, TimeRange, TypeSet,
};
use grainstore::format::{EpochMs, GrainType};
use grainstore::{
    ContentAddress, OpenOptions, PageOptions, QueryMatch, Session, SessionOptions, Store,
};

use crate::Result;
use crate::ask::{Ask, Hit, Line};
use crate::data::{Item, Kind};
use crate::peer::{CACHE_BYTES, Peer};

/// A store and the session of its operator, who sees every namespace.
#[derive(Debug)]
pub(crate) struct Grainstore {
    store: Store,
    session: Session,
}

impl Grainstore {
    /// Opens or creates the store in a directory.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let options = OpenOptions::new().create(true).cache_bytes(CACHE_BYTES);
        let store = Store::open(path.join("store"), &options)?;
        let session = store.session(SessionOptions::default());
        Ok(Self { store, session })
    }

    /// Hands the newest matches to `take` until there are enough.
    fn each(&self, ask: &Ask, mut take: impl FnMut(Candidate<'_>)) -> Result<()> {
        if ask.limit == 0 {
            return Ok(());
        }
        let mut found = 0;
        let mut visit = |candidate: Candidate<'_>| {
            take(candidate);
            found += 1;
            if found == ask.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.session.reading()?.recall(&query(ask)?, &CancelHandle::new(), &mut visit)?;
        Ok(())
    }
}

impl Peer for Grainstore {
    fn put(&self, items: Vec<Item>) -> Result<()> {
        if let [_] = items.as_slice() {
            for item in items {
                self.session.put(item.grain)?;
            }
        } else {
            self.session.put_batch(items.into_iter().map(|item| item.grain))?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<bool> {
        self.store.flush()?;
        Ok(true)
    }

    fn settle(&self) -> Result<()> {
        // Runs are merged once there is nothing else to do.
        for _ in 0..100 {
            if self.store.stats()?.index_runs <= 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<bool> {
        self.store.compact()?;
        Ok(true)
    }

    fn answers(&self, _: &Ask) -> bool {
        true
    }

    fn lines(&self, ask: &Ask) -> Result<Vec<Line>> {
        let mut lines = Vec::with_capacity(ask.limit);
        self.each(ask, |found| {
            let object = found.grain.text("object").map(str::to_owned);
            lines.push(Line { address: found.address, object });
        })?;
        Ok(lines)
    }

    fn hits(&self, ask: &Ask) -> Result<Vec<Hit>> {
        let answer = self.session.query(&query(ask)?, &PageOptions::first(ask.limit))?;
        let hit = |found: QueryMatch| Hit { address: found.content_address, grain: found.grain };
        Ok(answer.results.into_iter().map(hit).collect())
    }

    fn has_addresses(&self) -> bool {
        true
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Vec<u8>>> {
        let [found] = <[_; 1]>::try_from(self.session.get_batch(&[*address])?)
            .map_err(|_| "one address has one answer")?;
        Ok(found.map(|stored| stored.blob))
    }
}

/// The question in the engine's words.
fn query(ask: &Ask) -> Result<Query> {
    let texts = [
        ("subject", &ask.subject),
        ("relation", &ask.relation),
        ("object", &ask.object),
        ("user_id", &ask.user),
        ("session_id", &ask.session),
    ];
    let mut query = Query::default();
    for (field, wanted) in texts {
        if let Some(wanted) = wanted {
            query = query.when(Predicate::text_is(field, wanted.as_str())?);
        }
    }
    if let Some(tag) = &ask.tag {
        query = query.when(Predicate::tags_include(vec![tag.clone()]));
    }
    if let Some(namespace) = &ask.namespace {
        query = query.within(Reach::Exact(namespace.clone()));
    }
    if let Some((from, to)) = ask.time_ms {
        query = query.during(TimeRange { from: EpochMs::new(from), to: EpochMs::new(to) });
    }
    Ok(match ask.kind {
        Some(Kind::Belief) => query.of_types(TypeSet::of(GrainType::Belief)),
        Some(Kind::Event) => query.of_types(TypeSet::of(GrainType::Event)),
        None => query,
    })
}
