//! The commands, one a file. The table below drives the parser, the help and `run`.

mod add;
pub(crate) mod audit;
mod backup;
mod cal;
mod compact;
mod decode;
pub(crate) mod demo;
mod disclose;
mod doctor;
mod encode;
pub(crate) mod erase;
mod export;
mod get;
mod history;
mod import;
mod init;
mod keys;
mod marks;
mod policy;
mod prove;
mod put;
mod recall;
mod reindex;
mod remove_vectors;
mod rpc;
mod sign;
pub(crate) mod stats;
mod subject_report;
mod supersede;
pub(crate) mod verify;
mod verify_signature;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;
use crate::repl;

pub(crate) use cal::{READS_ONLY, parse_param};

/// Declares the commands by group: a variant for each, and its arguments, which have a `run`.
macro_rules! commands {
    ($($group:literal { $($name:ident($arguments:ty)),+ $(,)? })+) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($($name($arguments)),+),+
        }

        impl Command {
            /// Groups of the help text, each with as many commands as follow in the order of the variants.
            pub(crate) const GROUPS: &'static [(&'static str, usize)] =
                &[$(($group, [$(stringify!($name)),+].len())),+];

            /// Runs the command.
            pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
                match self {
                    $($(Self::$name(arguments) => arguments.run(context)),+),+
                }
            }
        }
    };
}

commands! {
    "Start" {
        Init(init::Init),
        Demo(demo::Demo),
    }
    "Write" {
        Add(add::Add),
        Put(put::Put),
        Supersede(supersede::Supersede),
        Contradict(marks::Contradict),
        SetVerification(marks::SetVerification),
        Hold(marks::Hold),
        LiftHold(marks::LiftHold),
    }
    "Ask" {
        Recall(recall::Recall),
        Get(get::Get),
        History(history::History),
        Cal(cal::Cal),
        Repl(repl::Repl),
    }
    "Privacy and rules" {
        Erase(erase::Erase),
        Sweep(erase::Sweep),
        SubjectReport(subject_report::SubjectReport),
        Policy(policy::Policy),
        Keys(keys::Keys),
    }
    "Maintain" {
        Verify(verify::Verify),
        Audit(audit::Audit),
        Doctor(doctor::Doctor),
        Stats(stats::Stats),
        Compact(compact::Compact),
        Reindex(reindex::Reindex),
        RemoveVectors(remove_vectors::RemoveVectors),
        Backup(backup::Backup),
    }
    "Move" {
        Export(export::Export),
        Import(import::Import),
    }
    "Grains without a store" {
        Encode(encode::Encode),
        Decode(decode::Decode),
        Sign(sign::Sign),
        VerifySignature(verify_signature::VerifySignature),
        Prove(prove::Prove),
        Disclose(disclose::Disclose),
    }
    "For programs" {
        Rpc(rpc::Rpc),
    }
}
