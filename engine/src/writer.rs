//! The one writer: it takes what is waiting as a group, decides all, applies all in one transaction,
//! publishes the new view and only then answers.
//!
//! Callers have validated, encoded and addressed what they send; nothing heavy happens here. An
//! acknowledged write is synced.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, RwLock};

use grainstore_format::ContentAddress;
use grainstore_index::{self as index, StagedDictionary, Tail};
use redb::{Database, Durability, WriteTransaction};

use crate::audit::{AuditRecord, Chain};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::keys::{self, AddressKey, Envelope};
use crate::pending::{Reply, stopped};
use crate::plan::{Author, Plan, Prepared, Put, SameFact, Staged};
use crate::view::{View, push};

/// Writes that wait for the writer before senders have to.
pub(crate) const QUEUE: usize = 4096;
/// Members of one group.
const MAX_MEMBERS: usize = 256;
/// Bytes of blobs in one group, beyond which no further member joins.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// What can be asked of the writer.
pub(crate) enum Request {
    Write(Write),
    /// Fold the tail, and answer when everything before is on disk.
    Flush(Reply<()>),
}

/// A member of a group.
pub(crate) enum Write {
    Put {
        grain: Box<Prepared>,
        same_fact: SameFact,
        author: Author,
        reply: Reply<Put>,
    },
    PutBatch {
        grains: Vec<Prepared>,
        author: Author,
        reply: Reply<Vec<Put>>,
    },
    Supersede {
        old: ContentAddress,
        new: Box<Prepared>,
        author: Author,
        reply: Reply<ContentAddress>,
    },
}

impl Request {
    fn bytes(&self) -> usize {
        match self {
            Self::Write(Write::Put { grain: new, .. } | Write::Supersede { new, .. }) => {
                new.blob.bytes().len()
            }
            Self::Write(Write::PutBatch { grains, .. }) => {
                grains.iter().map(|grain| grain.blob.bytes().len()).sum()
            }
            Self::Flush(_) => 0,
        }
    }
}

/// An answer that is ready, but not to be given before the group is durable.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// The view readers take, replaced with each commit.
pub(crate) type Shared = Arc<RwLock<Option<Arc<View>>>>;

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) db: Database,
    pub(crate) chain: Chain,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shared: Shared,
    pub(crate) view: Arc<View>,
    /// The failure that ended writing. What is in memory may lag behind the disk after one, so
    /// nothing more is written until the store is opened again.
    pub(crate) failed: Option<Error>,
}

impl Writer {
    /// Serves requests until every sender is gone, then folds what is left.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let group = gather(first, requests);
            self.serve(group);
        }
        // A failure here loses nothing: the log has it all, and the next open folds again.
        let _ = self.fold();
        self.publish(None);
    }

    fn serve(&mut self, group: Vec<Request>) {
        let mut flushes = Vec::new();
        let mut answers: Vec<Answer> = Vec::new();
        let view = Arc::clone(&self.view);
        let outcome = self.ready().and_then(|()| {
            let mut plan = Plan::new(&view, self.clock.now())?;
            for request in group {
                match request {
                    Request::Flush(reply) => flushes.push(reply),
                    Request::Write(write) => answers.push(decide(&mut plan, write)),
                }
            }
            self.apply(&plan).inspect_err(|error| self.failed = Some(error.clone()))
        });
        for answer in answers {
            answer(outcome.clone());
        }
        for reply in flushes {
            let _ = reply.send(outcome.clone().and_then(|()| self.fold()));
        }
    }

    fn ready(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Writes what was planned, syncs it and lets readers see it.
    fn apply(&mut self, plan: &Plan<'_>) -> Result<()> {
        if plan.is_empty() {
            return Ok(());
        }
        let mut txn = self.db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        write_grains(&txn, &plan.grains)?;
        write_states(&txn, plan)?;
        let mut chain = self.chain.clone();
        append_audit(&txn, &mut chain, &plan.audit, plan.now())?;
        let tail = self.extend_tail(&txn, &plan.grains)?;
        txn.commit()?;
        self.chain = chain;
        self.refresh(tail)
    }

    /// The tail with the new grains; where it grows full, folded within this transaction.
    fn extend_tail(&self, txn: &WriteTransaction, grains: &[Staged]) -> Result<Tail> {
        let mut tail = self.view.tail().clone();
        let mut folded = false;
        for chunk in grains.chunks(Tail::MAX_GRAINS) {
            {
                let staged = folded.then(|| StagedDictionary::open(txn)).transpose()?;
                for Staged { sequence, prepared } in chunk {
                    let blob = &prepared.blob;
                    let (address, bytes) = (blob.address(), blob.bytes());
                    match &staged {
                        Some(words) => push(&mut tail, words, *sequence, &address, bytes)?,
                        None => {
                            push(&mut tail, self.view.tables(), *sequence, &address, bytes)?;
                        }
                    }
                }
            }
            if tail.is_full() {
                index::fold(txn, &tail)?;
                tail = tail.folded();
                folded = true;
            }
        }
        Ok(tail)
    }

    /// Folds the tail into the derived tables.
    fn fold(&mut self) -> Result<()> {
        self.ready()?;
        if self.view.tail().grains() == 0 {
            return Ok(());
        }
        let txn = self.db.begin_write()?;
        index::fold(&txn, self.view.tail())?;
        txn.commit()?;
        let tail = self.view.tail().folded();
        self.refresh(tail)
    }

    /// Lets readers see the tables as they are now, with this tail.
    fn refresh(&mut self, tail: Tail) -> Result<()> {
        self.view = Arc::new(View::with_tail(&self.db, tail)?);
        self.publish(Some(Arc::clone(&self.view)));
        Ok(())
    }

    fn publish(&self, view: Option<Arc<View>>) {
        let mut shared = self.shared.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *shared = view;
    }
}

/// The first request and whatever else is waiting, within bounds.
fn gather(first: Request, requests: &Receiver<Request>) -> Vec<Request> {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while group.len() < MAX_MEMBERS && bytes < MAX_GROUP_BYTES {
        match requests.try_recv() {
            Ok(next) => {
                bytes = bytes.saturating_add(next.bytes());
                group.push(next);
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    group
}

/// Stages one member; its answer waits for the group.
fn decide(plan: &mut Plan<'_>, write: Write) -> Answer {
    match write {
        Write::Put { grain, same_fact, author, reply } => {
            let put = plan.put(vec![*grain], same_fact, &author);
            let put = put.and_then(|puts| puts.into_iter().next().ok_or_else(stopped));
            answer(reply, put)
        }
        Write::PutBatch { grains, author, reply } => {
            answer(reply, plan.put(grains, SameFact::Add, &author))
        }
        Write::Supersede { old, new, author, reply } => {
            answer(reply, plan.supersede(&old, *new, &author))
        }
    }
}

/// A refusal stands whatever becomes of the group; a success only if the group is durable.
fn answer<T: Send + 'static>(reply: Reply<T>, decided: Result<T>) -> Answer {
    Box::new(move |durable| {
        let result = match decided {
            Ok(value) => durable.map(|()| value),
            refused => refused,
        };
        // Nobody may be waiting any more.
        let _ = reply.send(result);
    })
}

fn write_grains(txn: &WriteTransaction, grains: &[Staged]) -> Result<()> {
    if grains.is_empty() {
        return Ok(());
    }
    let mut log = txn.open_table(keys::LOG)?;
    let mut addresses = txn.open_table(keys::ADDRESS)?;
    for Staged { sequence, prepared } in grains {
        let envelope = Envelope::seal(prepared.blob.bytes());
        log.insert(sequence.get(), envelope.as_slice())?;
        let address = AddressKey::plain(&prepared.blob.address());
        addresses.insert(address.as_bytes(), sequence.get())?;
    }
    Ok(())
}

fn write_states(txn: &WriteTransaction, plan: &Plan<'_>) -> Result<()> {
    if plan.states.is_empty() {
        return Ok(());
    }
    let mut states = txn.open_table(keys::STATE)?;
    for (sequence, record) in &plan.states {
        states.insert(sequence.get(), &keys::encode_state(record))?;
    }
    Ok(())
}

/// Links records to the chain and stores them with its new head.
pub(crate) fn append_audit(
    txn: &WriteTransaction,
    chain: &mut Chain,
    records: &[AuditRecord],
    now: grainstore_format::EpochMs,
) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut audit = txn.open_table(keys::AUDIT)?;
    for record in records {
        let (sequence, entry) = chain.link(record, now);
        audit.insert(sequence, entry.as_slice())?;
        if let Some(reason) = &record.reason {
            let mut reasons = txn.open_table(keys::REASONS)?;
            reasons.insert(sequence, Envelope::seal(reason.as_bytes()).as_slice())?;
        }
    }
    audit.insert(keys::AUDIT_HEAD, chain.head().encode().as_slice())?;
    Ok(())
}
