//! `grain cluster`: a store on several machines, with a journal in PostgreSQL (docs/cluster.md).

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use grainstore::journal::{Journal, ShardId};
use grainstore::{Clock as _, Error as GrainstoreError, OpenOptions, Store, SystemClock};
use grainstore_cluster::{
    Attendant, Node, NodeOptions, NodeRole, PostgresJournal, PostgresOptions, Replication,
};
use grainstore_rpc::StoreSocket;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::{Context, with_opening_hint};
use crate::error::{Code, Error, Result};
use crate::interrupt::set_at_signals;
use crate::output::Output;

/// Time between two looks at whether the node is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Keep one store on several machines, with its journal in PostgreSQL
///
/// A shard is a store that several nodes have a copy of, each in its own --store. One of them leads and writes; the others
/// follow it, answer reads, and take over when it is gone.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make the tables of the journal, if they are not there
    Init(Database),
    /// Run a node, until a signal stops it
    ///
    /// It prints a line whenever its role changes. Other commands use its copy by --store, as that of any process that has
    /// a store open: every node answers reads, and the one that leads takes writes, which are ERR_NOT_LEADER elsewhere.
    Node {
        #[command(flatten)]
        database: Database,
        /// Its name, another for each node
        #[arg(long, value_name = "NAME")]
        name: String,
        /// The shard
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        shard: u64,
        /// It follows only, and never leads
        #[arg(long)]
        follow: bool,
        /// Milliseconds after which another node takes the lead of one that is gone
        #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
        lease_ms: u64,
        /// Milliseconds that a write waits for a database that is not reached, before it is in doubt
        #[arg(long, value_name = "MS", default_value_t = 10_000)]
        patience_ms: u64,
    },
    /// Print where the journal of each shard stands, and who leads it
    Status(Database),
    /// Print the position of a copy in the journal: what was acknowledged before is at this position or before it
    Position,
    /// Wait until reads of a copy see a position of the journal, or all that was acknowledged by now
    Wait {
        /// A position, as `position` prints it on another node
        #[arg(value_name = "POSITION")]
        position: Option<String>,
        /// Milliseconds to wait
        #[arg(long, value_name = "MS", default_value_t = 10_000)]
        timeout_ms: u64,
    },
}

/// The answer of `position` and `wait_for`.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    position: Option<String>,
    role: Option<String>,
}

/// The database of the journal.
#[derive(Debug, Args)]
struct Database {
    /// A URL of PostgreSQL, or name=value pairs; better in the environment if it has a password
    #[arg(long, value_name = "URL", env = "GRAINSTORE_JOURNAL", hide_env_values = true)]
    journal: Option<String>,
    /// The schema of the tables: one for each cluster of a database
    #[arg(long, value_name = "NAME", default_value = "grainstore")]
    schema: String,
    /// Certificates in PEM to check the server's by, with sslmode=require; the system's by default
    #[arg(long, value_name = "FILE")]
    roots: Option<PathBuf>,
}

impl Database {
    fn journal(&self) -> Result<PostgresJournal> {
        let named = self.journal.as_ref().filter(|url| !url.trim().is_empty());
        let url = named.ok_or_else(|| {
            let hint = "export GRAINSTORE_JOURNAL=postgresql://USER:PASSWORD@HOST/DATABASE, or give --journal";
            Error::usage(Code::Schema, "no journal is named", hint)
        })?;
        let mut options = PostgresOptions::new(url).schema(&self.schema);
        if let Some(file) = &self.roots {
            let pem = fs::read(file).map_err(|error| {
                let message = format!("{}: {error}", file.display());
                Error::new(Code::NotFound, message, "name a file of certificates in PEM")
            })?;
            options = options.roots(pem);
        }
        Ok(PostgresJournal::new(&options)?)
    }
}

impl Cluster {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.what {
            What::Init(database) => {
                let journal = database.journal()?;
                journal.init()?;
                let replication = warn_if_asynchronous(&journal, context)?;
                let told = json!({ "schema": database.schema, "replication": replication });
                let output = &mut context.output;
                output.answer(&told, |output| {
                    output.line(&format!("the journal is in schema {}", database.schema))
                })?;
                output.flush()
            }
            What::Status(database) => status(&database.journal()?, context),
            What::Position => tell_place(context, "position", &json!({})),
            What::Wait { position, timeout_ms } => {
                let mut asked = json!({ "timeout_ms": timeout_ms });
                if let (Some(position), Value::Object(asked)) = (position, &mut asked) {
                    asked.insert("position".to_owned(), position.into());
                }
                tell_place(context, "wait_for", &asked)
            }
            What::Node { database, name, shard, follow, lease_ms, patience_ms } => {
                let journal = database.journal()?;
                match warn_if_asynchronous(&journal, context) {
                    // It waits for a database that is not up yet.
                    Err(error) if error.refusal().is_some_and(|said| said.code == "ERR_IO") => {
                        let hint =
                            error.refusal().map(|said| said.hint.clone()).unwrap_or_default();
                        context
                            .output
                            .note(&format!("note: {error}; the node tries again ({hint})"));
                    }
                    told => drop(told?),
                }
                let mut options = NodeOptions::new(name, &context.globals.store);
                options.open = context.own_options()?;
                options.shard = ShardId(shard);
                options.leads = !follow;
                options.lease = Duration::from_millis(lease_ms);
                options.patience = Duration::from_millis(patience_ms);
                let teller = Arc::new(Teller {
                    node: options.name.clone(),
                    patience: options.lease / 2,
                    open: options.open.clone(),
                    is_json: context.output.is_json(),
                    socket: Mutex::default(),
                    last: Mutex::default(),
                });
                options.attendant = Some(Arc::<Teller>::clone(&teller));
                run_node(options, Arc::new(journal))?;
                teller.print(json!({ "role": "stopped" }), "stopped");
                Ok(())
            }
        }
    }
}

/// Prints the place of the copy in --store.
fn tell_place(context: &mut Context<'_>, method: &str, asked: &Value) -> Result<()> {
    let not_there = "start its node (`grain cluster node`), and wait until that leads or follows";
    let reached = context.reach();
    let reached = reached.map_err(|error| error.with_hint_for(Code::NotFound.name(), not_there))?;
    let place: Place = reached.read(method, asked)?;
    let Some(position) = &place.position else {
        let message = "this store has no journal, and so no positions";
        return Err(Error::new(Code::Conflict, message, "name the copy of a node by --store"));
    };
    let output = &mut context.output;
    output.answer(&place, |output| output.line(position))?;
    output.flush()
}

fn run_node(options: NodeOptions, journal: Arc<dyn Journal>) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    set_at_signals(&stop);
    let node = Node::start(options, journal)?;
    while !stop.load(Ordering::SeqCst) {
        if let NodeRole::Stopped(error) = node.role() {
            let error = Error::from(error);
            return Err(if error.has_code(Code::Key) { with_opening_hint(error) } else { error });
        }
        thread::sleep(LOOK_EVERY);
    }
    node.stop();
    Ok(())
}

/// Warns of a database whose failover may lose what was acknowledged. Returns how it replicates.
fn warn_if_asynchronous(
    journal: &PostgresJournal,
    context: &mut Context<'_>,
) -> Result<&'static str> {
    Ok(match journal.replication()? {
        Replication::Synchronous => "synchronous",
        _ => {
            context.output.note(
                "note: this database does not wait for a standby, which is fine for a try: if it fails over, what was \
                 acknowledged may be lost (docs/cluster.md, \"Running it\")",
            );
            "asynchronous"
        }
    })
}

fn status(journal: &PostgresJournal, context: &mut Context<'_>) -> Result<()> {
    let output = &mut context.output;
    let shards = journal.shards()?;
    if shards.is_empty() {
        output.note("note: no node has led a shard yet");
    }
    for shard in shards {
        let status = journal.status(shard)?;
        let lease = u64::try_from(status.lease.as_millis()).unwrap_or(u64::MAX);
        let told = json!({
            "shard": shard.0,
            "commit": status.head.commit,
            "epoch": status.epoch,
            "leader": status.leader,
            "lease_ms": lease,
        });
        output.answer(&told, |output| {
            let commit = status.head.commit;
            let leads = match &status.leader {
                Some(node) if lease > 0 => format!("{node} leads, for {lease} ms more"),
                Some(node) => format!("nobody leads; {node} did"),
                None => "nobody leads".to_owned(),
            };
            output.line(&format!("shard {shard}: commit {commit}, epoch {}, {leads}", status.epoch))
        })?;
    }
    output.flush()
}

/// Tells of the roles of a node, and serves its copy to other processes.
#[derive(Debug)]
struct Teller {
    node: String,
    /// Time for which requests are waited for that run while the role changes.
    patience: Duration,
    open: OpenOptions,
    is_json: bool,
    socket: Mutex<Option<StoreSocket>>,
    /// The last role that was told, which is not told again.
    last: Mutex<String>,
}

impl Teller {
    fn tell(&self, role: &NodeRole, position: Option<&str>) {
        let (epoch, leader, error) = match role {
            NodeRole::Leader { epoch } => (Some(*epoch), Some(self.node.clone()), None),
            NodeRole::Follower { leader } => (None, leader.clone(), None),
            NodeRole::Waiting(error) | NodeRole::Stopped(error) => (None, None, Some(error)),
            _ => (None, None, None),
        };
        let name = role.name();
        let mut line = match role {
            NodeRole::Follower { leader: Some(leader) } if *leader == self.node => {
                format!(
                    "{name} of {leader}, which is its own lead of before or another node of its name"
                )
            }
            NodeRole::Follower { leader: Some(leader) } => format!("{name} of {leader}"),
            NodeRole::Follower { leader: None } => format!("{name}; nobody leads"),
            _ => name.to_owned(),
        };
        if let Some(epoch) = epoch {
            line = format!("{line}, epoch {epoch}");
        }
        let last = line.clone();
        if let Some(position) = position {
            line = format!("{line}, at {position}");
        }
        if let Some(error) = error {
            line = format!("{line}: {error} ({}; {})", error.code(), error.hint());
        }
        let told = error.map_or_else(|| last, |_| line.clone());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *last, told.clone()) == told {
            return;
        }
        drop(last);
        let told = json!({
            "role": name,
            "epoch": epoch,
            "leader": leader,
            "position": position,
            "code": error.map_or(Value::Null, |error| error.code().into()),
            "error": error.map(ToString::to_string),
            "hint": error.map(GrainstoreError::hint),
        });
        self.print(told, &line);
    }

    /// Prints a line, or an object with these members, with the time and the name of the node.
    fn print(&self, mut told: Value, line: &str) {
        let now = SystemClock.now();
        if let Value::Object(told) = &mut told {
            told.insert("time_ms".to_owned(), now.get().into());
            told.insert("node".to_owned(), self.node.clone().into());
        }
        let (mut out, mut notes) = (io::stdout().lock(), io::sink());
        let mut output = Output::new(&mut out, &mut notes, self.is_json);
        // Whoever closed stdout is told nothing; the node runs all the same.
        let _ = output.answer(&told, |output| output.line(&format!("{now} {}: {line}", self.node)));
        let _ = output.flush();
    }

    fn set_socket(&self, socket: Option<StoreSocket>) {
        let mut place = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *place, socket) {
            before.close_within(self.patience);
        }
    }
}

fn place_of(store: &Store) -> Option<String> {
    store.position().ok().flatten().map(|at| at.to_string())
}

impl Attendant for Teller {
    fn opened(&self, store: &Store, role: &NodeRole) {
        // Where there can be no socket, other processes read with --read-only once the node has stopped.
        self.set_socket(StoreSocket::open(store, &self.open).ok());
        self.tell(role, place_of(store).as_deref());
    }

    fn closing(&self, role: &NodeRole) {
        self.set_socket(None);
        if !matches!(role, NodeRole::Changing) {
            self.tell(role, None);
        }
    }

    fn leader_changed(&self, store: &Store, role: &NodeRole) {
        self.tell(role, place_of(store).as_deref());
    }

    fn journal_reached(&self, failed: Option<&GrainstoreError>) {
        let line = failed.map_or_else(
            || "the journal is reached again".to_owned(),
            |error| {
                let (code, hint) = (error.code(), error.hint());
                format!("the journal is not reached, and reads go on: {error} ({code}; {hint})")
            },
        );
        let code = failed.map_or(Value::Null, |error| error.code().into());
        let told = json!({
            "journal_reached": failed.is_none(),
            "code": code,
            "error": failed.map(ToString::to_string),
            "hint": failed.map(GrainstoreError::hint),
        });
        self.print(told, &line);
    }
}
