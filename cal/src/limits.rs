//! The limits of spec sections 2, 5 and 6, in one place.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Bytes of a query.
pub(crate) const QUERY_BYTES: usize = 8_192;
/// Bytes of a query in JSON before it is measured as text (ours): JSON spends more on the same.
pub(crate) const JSON_BYTES: usize = 8 * QUERY_BYTES;
/// Values within each other in a query in JSON (ours): more than any query needs.
pub(crate) const JSON_DEPTH: usize = 40;
/// Distinct parameters of a query.
pub(crate) const PARAMETERS: usize = 20;
/// LIMIT where none is written.
pub(crate) const DEFAULT_LIMIT: u64 = 20;
/// LIMIT of THREAD where none is written.
pub(crate) const THREAD_LIMIT: u64 = 1_000;
/// The largest LIMIT and RECENT.
pub(crate) const MAX_LIMIT: u64 = 1_000;
/// Pipeline stages of a RECALL.
pub(crate) const STAGES: usize = 5;
/// Values of an IN list.
pub(crate) const IN_VALUES: usize = 100;
/// Subqueries within each other.
pub(crate) const SUBQUERIES: usize = 3;
/// LETs of a query.
pub(crate) const LETS: usize = 5;
/// LETs that build on each other.
pub(crate) const LET_DEPTH: usize = 3;
/// Operands of set operations in one query, and how deep they nest.
pub(crate) const OPERANDS: usize = 5;
/// Entries of a BATCH.
pub(crate) const ENTRIES: usize = 10;
/// Branches of a COALESCE.
pub(crate) const BRANCHES: usize = 5;
/// Values of an extractor and groups of GROUP BY in an answer (ours).
pub(crate) const VALUES: usize = 1_000;
/// Contradictions shown for a grain (ours).
pub(crate) const CONTRADICTIONS: usize = 20;
/// Tokens a grain takes in a text, for EXPLAIN; an estimate (ours).
pub(crate) const TOKENS_A_GRAIN: u64 = 24;
/// Sources of an ASSEMBLE.
pub(crate) const SOURCES: usize = 8;
/// Characters of an assembly's name.
pub(crate) const NAME_CHARS: usize = 64;
/// Characters of FOR.
pub(crate) const INTENT_CHARS: usize = 256;
/// Characters of REASON.
pub(crate) const REASON_CHARS: usize = 500;
/// Token budget: default and most.
pub(crate) const TOKENS: (u64, u64) = (4_000, 16_000);
/// Grain budget: default and most.
pub(crate) const GRAINS: (u64, u64) = (50, 200);
/// Tokens of a chunk of a streamed text: fewest and most.
pub(crate) const CHUNK_TOKENS: RangeInclusive<u64> = 20..=1_000;
/// Tokens of a chunk where nothing is said.
pub(crate) const DEFAULT_CHUNK_TOKENS: usize = 100;
/// Versions a HISTORY answers.
pub(crate) const VERSIONS: usize = 100;
/// A source that asks for at most this many grains is shown in full by the bare disclosure rule.
pub(crate) const FEW: u64 = 5;
/// Grains a pipeline keeps in memory at once (ours).
pub(crate) const SORTED_ROWS: usize = 10_000;
/// Matches counted for `total`; beyond, it stays unknown and COUNT tells (ours).
pub(crate) const TOTAL_MATCHES: u64 = 1_000;
/// Bytes of memory that the grains and values a pipeline keeps take at once, as `exec/size.rs`
/// reckons them (ours). Sources of an ASSEMBLE that run ahead may hold as much once more.
pub(crate) const ROW_BYTES: usize = 64 << 20;
/// Time for one query.
pub(crate) const QUERY_TIME: Duration = Duration::from_secs(5);
/// Time for one ASSEMBLE.
pub(crate) const ASSEMBLE_TIME: Duration = Duration::from_secs(10);
/// Time for who listens to an ASSEMBLE, beside that (ours).
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What relevance counts for in `diversity(mmr)` where no lambda is given.
pub(crate) const LAMBDA: f64 = 0.5;
