//! The command line: parses the options and the command, and prints the help by group.

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::globals::Globals;
use crate::registry::Command;
use crate::repl::{self, Repl};

const EXIT_CODE_HELP: &str = "\
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the store is open elsewhere,
4 stored data fails its integrity check.
Data goes to stdout, diagnostics to stderr.";

/// Memory for agents: content-addressed grains, their history, and CAL to ask for them.
#[derive(Debug, Parser)]
#[command(name = "grain", version, after_help = EXIT_CODE_HELP)]
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
