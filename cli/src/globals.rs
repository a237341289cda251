//! The options of every command. Knows no command.

use std::path::PathBuf;

use clap::Args;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// The directory of the store
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "GRAIN_STORE",
        default_value = "./memory.grains"
    )]
    pub(crate) store: PathBuf,
    /// Work in this namespace and those below it; without it, in all
    #[arg(long, global = true, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// The person it is for: sees their grains and those of nobody, MY in CAL; without it, those of all.
    /// An encrypted store wants it for questions
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) user: Option<String>,
    /// The DID that writes are recorded under; without it, the operator
    #[arg(long, global = true, value_name = "DID")]
    pub(crate) actor: Option<String>,
    /// Who is the operator, and may lift a hold that names nobody; without it, any actor
    #[arg(long, global = true, value_name = "DID")]
    pub(crate) operator: Option<String>,
    /// Who may clear the review that a grain asks for, beside the operator, as --actor; may be given several times
    #[arg(long = "reviewer", global = true, value_name = "DID")]
    pub(crate) reviewers: Vec<String>,
    /// Whom a locked grain names as authorized may invalidate it by a signature, beside its author (OMS
    /// 12.5.4); without it, its author alone (23.2)
    #[arg(long, global = true)]
    pub(crate) locked_accepts_authorized_signature: bool,
    /// Keys of signers whose DID does not hold theirs (did:web): a file with their DID documents, in JSON
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) did_documents: Option<PathBuf>,
    /// The same by a program, which is run with the DID as its argument and prints the DID document
    #[arg(long, global = true, value_name = "PROGRAM")]
    pub(crate) did_resolver: Option<String>,
    /// What it is for, which rules of the store may ask; may be given several times
    #[arg(long = "purpose", global = true, value_name = "PURPOSE")]
    pub(crate) purposes: Vec<String>,
    /// The key of an encrypted store: a file of 32 bytes that only its owner can read
    #[arg(long, global = true, value_name = "FILE", env = "GRAIN_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Record no calls in CAL that read; DESCRIBE capabilities and `grain doctor` say so then
    #[arg(long, global = true)]
    pub(crate) no_audit_reads: bool,
    /// Count no reads of grains: their access_count and last_accessed_at stay as they are
    #[arg(long, global = true)]
    pub(crate) no_access_counts: bool,
    /// Memory of the store for all but vectors, in bytes: 16777216 (16 MiB) at the least, 128 MiB by default
    #[arg(long, global = true, value_name = "BYTES")]
    pub(crate) memory: Option<usize>,
    /// Write nothing to the store's directory: for full disks, read-only media and backups
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Have the store for this process alone: another process that has it open is waited for, not shared with
    #[arg(long, global = true)]
    pub(crate) exclusive: bool,
    /// Milliseconds to wait for a store that another process has open and does not share
    #[arg(long, global = true, value_name = "MS", default_value_t = 2000)]
    pub(crate) wait_ms: u64,
    /// Answer in JSON: one document, or one a line for lists; errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
}
