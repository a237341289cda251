//! The list of commands, by group: it drives the parser, the help and `run`.

use clap::Subcommand;

#[cfg(feature = "cluster")]
use crate::commands::cluster;
use crate::commands::{
    add, ages, alf, audit, backup, bench, cal, compact, decode, demo, disclose, doctor, encode,
    erase, export, frames, get, history, import, init, keys, mcp, migrate, policy, prove, put,
    recall, reindex, remove_vectors, rpc, saga, sign, state_changes, stats, subject_report,
    supersede, verify, verify_signature, views,
};
#[cfg(feature = "serve")]
use crate::commands::{serve, tokens};
use crate::context::Context;
use crate::error::Result;
use crate::repl;

/// Declares the commands by group: a variant for each, and its arguments, which have a `run`.
macro_rules! commands {
    ($($group:literal { $($(#[$if:meta])? $name:ident($arguments:ty)),+ $(,)? })+) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($($(#[$if])? $name($arguments)),+),+
        }

        impl Command {
            /// Groups of the help text, each with as many commands as follow in the order of the variants.
            pub(crate) const GROUPS: &'static [(&'static str, usize)] =
                &[$(($group, [$($(#[$if])? stringify!($name)),+].len())),+];

            /// Runs the command.
            pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
                match self {
                    $($($(#[$if])? Self::$name(arguments) => arguments.run(context)),+),+
                }
            }
        }
    };
}

commands! {
    "Start" {
        Init(init::Init),
        Demo(demo::Demo),
        Bench(bench::Bench),
    }
    "Write" {
        Add(add::Add),
        Put(put::Put),
        Supersede(supersede::Supersede),
        Contradict(state_changes::Contradict),
        SetVerification(state_changes::SetVerification),
        Hold(state_changes::Hold),
        LiftHold(state_changes::LiftHold),
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
    "Neighbours" {
        Alf(alf::Alf),
        Saga(saga::Saga),
        Migrate(migrate::Migrate),
        Ages(ages::Ages),
    }
    "Grains without a store" {
        Encode(encode::Encode),
        Decode(decode::Decode),
        Sign(sign::Sign),
        VerifySignature(verify_signature::VerifySignature),
        Prove(prove::Prove),
        Disclose(disclose::Disclose),
        CheckView(views::CheckView),
        RestoreView(views::RestoreView),
        Frames(frames::Frames),
    }
    "For programs" {
        Mcp(mcp::Mcp),
        Rpc(rpc::Rpc),
        #[cfg(feature = "cluster")]
        Cluster(cluster::Cluster),
        #[cfg(feature = "serve")]
        Serve(serve::Serve),
        #[cfg(feature = "serve")]
        Tokens(tokens::Tokens),
    }
}
