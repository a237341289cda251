//! The names of all that is measured: rows of the table, and what plots look for.

/// Bulk load.
pub const LOAD: &str = "bulk load in batches of 1,000, the last flush included";
/// One of its batches.
pub const BATCH: &str = "durable batch of 1,000";
/// All facts of a subject.
pub const SUBJECT: &str = "latest 16 of a subject of 12, decoded";
/// Those of one relation.
pub const RELATION: &str = "subject and relation, 2 rows, decoded";
/// One fact by its key.
pub const GET: &str = "get";
/// A search.
pub const RARE: &str = "two rare words, top 10";
/// A search.
pub const COMMON: &str = "two common words, top 10";
/// A search for one of its kind.
pub const IDENTIFIER: &str = "an identifier, as `number4711`";
/// A search in words of a language.
pub const RECALL_RARE: &str = "CAL RECALL, two rare words";
/// A search in words of a language.
pub const RECALL_COMMON: &str = "CAL RECALL, two common words";
/// All facts of a subject as a text.
pub const TEXT: &str = "CAL RECALL of 16 as SML";
/// A context.
pub const ASSEMBLE_RARE: &str = "ASSEMBLE, 3 sources, 2,000 tokens, rare words";
/// A context.
pub const ASSEMBLE_COMMON: &str = "ASSEMBLE, the same, common words";
/// A context that does not fit.
pub const ASSEMBLE_TRIMMED: &str = "ASSEMBLE, the same, trimmed to its tokens";
/// A fact, alone.
pub const PUT: &str = "durable put";
/// A fact in the place of another.
pub const SUPERSEDE: &str = "supersede";
/// Facts one by one.
pub const ONE_THREAD: &str = "durable puts, 1 thread, flush included";
/// Facts one by one, by many.
pub const THREADS: &str = "durable puts, 16 threads, flush included";
/// The last over the one before it.
pub const OVER_ONE: &str = "16 threads over 1";
/// Of the process.
pub const MEMORY: &str = "peak memory, all but compaction";
/// A store that was closed.
pub const OPEN: &str = "open, then one word";
/// Files as they were written.
pub const DISK: &str = "disk, as written";
/// Files without unused room.
pub const DISK_COMPACTED: &str = "disk, compacted";
