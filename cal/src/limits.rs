//! The limits of CAL 8.2, 11.2 and 17.3, in one place. "Ours" marks limits the standard does not set.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum bytes of a query.
pub(crate) const MAX_QUERY_BYTES: usize = 8_192;
/// Maximum bytes of a query in JSON, before it is measured as text (ours): JSON needs more bytes for the
/// same query.
pub(crate) const MAX_JSON_BYTES: usize = 8 * MAX_QUERY_BYTES;
/// Maximum nesting of values in a query in JSON (ours): more than any query needs.
pub(crate) const MAX_JSON_DEPTH: usize = 40;
/// Maximum distinct parameters of a query.
pub(crate) const MAX_PARAMETERS: usize = 20;
/// LIMIT if none is written.
pub(crate) const DEFAULT_LIMIT: u64 = 20;
/// LIMIT of THREAD if none is written.
pub(crate) const DEFAULT_THREAD_LIMIT: u64 = 1_000;
/// Maximum of LIMIT and RECENT.
pub(crate) const MAX_LIMIT: u64 = 1_000;
/// Maximum pipeline stages of a RECALL.
pub(crate) const MAX_STAGES: usize = 5;
/// Maximum values of an IN list.
pub(crate) const MAX_IN_VALUES: usize = 100;
/// Maximum nesting of subqueries.
pub(crate) const MAX_SUBQUERY_DEPTH: usize = 3;
/// Maximum LETs of a query.
pub(crate) const MAX_LETS: usize = 5;
/// Maximum length of a chain of LETs that use each other.
pub(crate) const MAX_LET_DEPTH: usize = 3;
/// Maximum operands of set operations in one query, and their maximum nesting.
pub(crate) const MAX_OPERANDS: usize = 5;
/// Maximum entries of a BATCH.
pub(crate) const MAX_BATCH_ENTRIES: usize = 10;
/// Maximum branches of a COALESCE.
pub(crate) const MAX_COALESCE_BRANCHES: usize = 5;
/// Maximum values of an extractor, and groups of GROUP BY, in an answer (ours).
pub(crate) const MAX_ANSWER_VALUES: usize = 1_000;
/// Maximum contradictions shown for a grain (ours).
pub(crate) const MAX_CONTRADICTIONS: usize = 20;
/// Estimated tokens of a grain in a text, for EXPLAIN (ours).
pub(crate) const ESTIMATED_GRAIN_TOKENS: u64 = 24;
/// Maximum sources of an ASSEMBLE.
pub(crate) const MAX_SOURCES: usize = 8;
/// Maximum characters of an assembly's name.
pub(crate) const MAX_NAME_CHARS: usize = 64;
/// Maximum characters of FOR.
pub(crate) const MAX_INTENT_CHARS: usize = 256;
/// Maximum characters of REASON.
pub(crate) const MAX_REASON_CHARS: usize = 500;
/// Token budget: default and maximum.
pub(crate) const TOKEN_BUDGET: (u64, u64) = (4_000, 16_000);
/// Grain budget: default and maximum.
pub(crate) const GRAIN_BUDGET: (u64, u64) = (50, 200);
/// Range of `chunk_size`, in tokens.
pub(crate) const CHUNK_TOKEN_RANGE: RangeInclusive<u64> = 20..=1_000;
/// Tokens of a chunk if `chunk_size` is not given.
pub(crate) const DEFAULT_CHUNK_TOKENS: usize = 100;
/// Maximum versions in the answer of a HISTORY.
pub(crate) const MAX_HISTORY_VERSIONS: usize = 100;
/// Maximum LIMIT of a source that is shown in full by `progressive_disclosure` without a level.
pub(crate) const FULL_DISCLOSURE_LIMIT: u64 = 5;
/// Maximum grains that a pipeline keeps in memory at once (ours).
pub(crate) const MAX_BUFFERED_GRAINS: usize = 10_000;
/// Maximum matches counted for `total`; beyond it `total` is unknown and COUNT must be used (ours).
pub(crate) const MAX_COUNTED_MATCHES: u64 = 1_000;
/// Maximum bytes of memory for the grains and values that a pipeline keeps at once, as `exec/size.rs`
/// estimates them (ours). Sources of an ASSEMBLE that run ahead may take as much again.
pub(crate) const MAX_BUFFERED_BYTES: usize = 64 << 20;
/// Time limit of a query.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of an ASSEMBLE.
pub(crate) const ASSEMBLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time the listener of an ASSEMBLE may take, beyond the time limit (ours).
pub(crate) const LISTENER_TIMEOUT: Duration = Duration::from_secs(60);

/// Weight of relevance in `diversity(mmr)` if no lambda is given.
pub(crate) const DEFAULT_MMR_LAMBDA: f64 = 0.5;
