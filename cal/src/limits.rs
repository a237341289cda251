//! The limits of CAL 8.2, 11.2 and 17.3, in one place. "Ours" marks limits the standard does not set.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum bytes of a query.
pub(crate) const QUERY_BYTES: usize = 8_192;
/// Maximum bytes of a query in JSON, before it is measured as text (ours): JSON needs more bytes for the
/// same query.
pub(crate) const JSON_BYTES: usize = 8 * QUERY_BYTES;
/// Maximum nesting of values in a query in JSON (ours): more than any query needs.
pub(crate) const JSON_DEPTH: usize = 40;
/// Maximum distinct parameters of a query.
pub(crate) const PARAMETERS: usize = 20;
/// LIMIT if none is written.
pub(crate) const DEFAULT_LIMIT: u64 = 20;
/// LIMIT of THREAD if none is written.
pub(crate) const THREAD_LIMIT: u64 = 1_000;
/// Maximum of LIMIT and RECENT.
pub(crate) const MAX_LIMIT: u64 = 1_000;
/// Maximum pipeline stages of a RECALL.
pub(crate) const STAGES: usize = 5;
/// Maximum values of an IN list.
pub(crate) const IN_VALUES: usize = 100;
/// Maximum nesting of subqueries.
pub(crate) const SUBQUERIES: usize = 3;
/// Maximum LETs of a query.
pub(crate) const LETS: usize = 5;
/// Maximum length of a chain of LETs that use each other.
pub(crate) const LET_DEPTH: usize = 3;
/// Maximum operands of set operations in one query, and their maximum nesting.
pub(crate) const OPERANDS: usize = 5;
/// Maximum entries of a BATCH.
pub(crate) const ENTRIES: usize = 10;
/// Maximum branches of a COALESCE.
pub(crate) const BRANCHES: usize = 5;
/// Maximum values of an extractor, and groups of GROUP BY, in an answer (ours).
pub(crate) const VALUES: usize = 1_000;
/// Maximum contradictions shown for a grain (ours).
pub(crate) const CONTRADICTIONS: usize = 20;
/// Estimated tokens of a grain in a text, for EXPLAIN (ours).
pub(crate) const TOKENS_A_GRAIN: u64 = 24;
/// Maximum sources of an ASSEMBLE.
pub(crate) const SOURCES: usize = 8;
/// Maximum characters of an assembly's name.
pub(crate) const NAME_CHARS: usize = 64;
/// Maximum characters of FOR.
pub(crate) const INTENT_CHARS: usize = 256;
/// Maximum characters of REASON.
pub(crate) const REASON_CHARS: usize = 500;
/// Token budget: default and maximum.
pub(crate) const TOKENS: (u64, u64) = (4_000, 16_000);
/// Grain budget: default and maximum.
pub(crate) const GRAINS: (u64, u64) = (50, 200);
/// Range of `chunk_size`, in tokens.
pub(crate) const CHUNK_TOKENS: RangeInclusive<u64> = 20..=1_000;
/// Tokens of a chunk if `chunk_size` is not given.
pub(crate) const DEFAULT_CHUNK_TOKENS: usize = 100;
/// Maximum versions in the answer of a HISTORY.
pub(crate) const VERSIONS: usize = 100;
/// Maximum LIMIT of a source that is shown in full by `progressive_disclosure` without a level.
pub(crate) const FEW: u64 = 5;
/// Maximum grains that a pipeline keeps in memory at once (ours).
pub(crate) const SORTED_ROWS: usize = 10_000;
/// Maximum matches counted for `total`; beyond it `total` is unknown and COUNT must be used (ours).
pub(crate) const TOTAL_MATCHES: u64 = 1_000;
/// Maximum bytes of memory for the grains and values that a pipeline keeps at once, as `exec/size.rs`
/// estimates them (ours). Sources of an ASSEMBLE that run ahead may take as much again.
pub(crate) const ROW_BYTES: usize = 64 << 20;
/// Time limit of a query.
pub(crate) const QUERY_TIME: Duration = Duration::from_secs(5);
/// Time limit of an ASSEMBLE.
pub(crate) const ASSEMBLE_TIME: Duration = Duration::from_secs(10);
/// Time the listener of an ASSEMBLE may take, beyond the time limit (ours).
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Weight of relevance in `diversity(mmr)` if no lambda is given.
pub(crate) const LAMBDA: f64 = 0.5;
