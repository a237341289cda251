//! The command line as data: the options of every command, and the list of commands.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::repl::{self, Repl};

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the store is open elsewhere,
4 stored data fails its integrity check.
Data goes to stdout, diagnostics to stderr.";

/// Memory for agents: content-addressed grains, their history, and CAL to ask for them.
#[derive(Debug, Parser)]
#[command(name = "grain", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do; on a terminal the prompt opens without it
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    /// Parses the arguments. Without a command on a terminal, it is the prompt.
    pub(crate) fn read() -> Result<(Globals, Command), clap::Error> {
        let matches = grouped(Self::command()).try_get_matches()?;
        let Self { globals, command } = Self::from_arg_matches(&matches)?;
        match command {
            Some(command) => Ok((globals, command)),
            None if repl::is_on_terminal() => Ok((globals, Command::Repl(Repl::default()))),
            None if globals.json => {
                let message = "what to do is missing";
                Err(Self::command().error(ErrorKind::MissingSubcommand, message))
            }
            None => {
                let mut command = grouped(Self::command());
                let help = command.render_help();
                Err(command.error(ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, help))
            }
        }
    }
}

/// Returns the command line with a help text that lists the commands by group.
fn grouped(line: clap::Command) -> clap::Command {
    let commands: Vec<_> = line.get_subcommands().cloned().collect();
    let width = commands.iter().map(|command| command.get_name().len()).max().unwrap_or_default();
    let mut rest = commands.iter();
    let mut listing = String::new();
    for (group, count) in Command::GROUPS {
        listing += &format!("{group}:\n");
        for command in rest.by_ref().take(*count) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            // The first clause; `grain help COMMAND` has the rest.
            let about = about.split([':', ';']).next().unwrap_or_default();
            listing += &format!("  {:width$}  {about}\n", command.get_name());
        }
        listing.push('\n');
    }
    listing += &format!("More:\n  {:width$}  Print the help of a command\n\n", "help");
    line.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listing}Options:\n{{options}}{{after-help}}"
    ))
}

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
    /// What it is for, which rules of the store may ask; may be given several times
    #[arg(long = "purpose", global = true, value_name = "PURPOSE")]
    pub(crate) purposes: Vec<String>,
    /// The key of an encrypted store: a file of 32 bytes that only its owner can read
    #[arg(long, global = true, value_name = "FILE", env = "GRAIN_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Record no calls in CAL that read; DESCRIBE capabilities and `grain doctor` say so then
    #[arg(long, global = true)]
    pub(crate) no_audit_reads: bool,
    /// Write nothing to the store's directory: for full disks, read-only media and backups
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Milliseconds to wait while another process has the store open
    #[arg(long, global = true, value_name = "MS", default_value_t = 2000)]
    pub(crate) wait_ms: u64,
    /// Answer in JSON: one document, or one a line for lists; errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
}
