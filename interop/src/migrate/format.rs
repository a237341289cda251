//! The formats, one table: the name of each, what it reads, how its exports look, and its reader.
//!
//! Knows how an export looks from outside; what is in it is the matter of `formats`.

mod look;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use grainstore::ErrorKind;
use serde::{Serialize, Serializer};

use super::formats;
use super::record::Sink;
use super::rows;
use super::source::{Source, SourceFile};
use crate::archive::Limits;
use crate::error::{Error, Result};
use crate::other::{self, DATABASE, Kind};
use look::{LOOK_BYTES, Look, Looks};

/// What a reader reads.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) source: &'a Source,
    /// The second file, if the format has one.
    pub(super) beside: Option<&'a Source>,
    /// Whose all records are, if the caller says so.
    pub(super) user: Option<&'a str>,
}

/// A reader: it pushes the records of an export.
type Reader = fn(&Ask<'_>, &mut dyn Sink) -> Result<()>;

/// A format of the table.
struct Info {
    format: Format,
    name: &'static str,
    /// What it is, as in "it looks like ...".
    title: &'static str,
    reads: &'static str,
    beside: Option<&'static str>,
    looks: Looks,
    reader: Reader,
}

macro_rules! formats {
    ($($variant:ident $name:literal $title:literal, $reads:literal, $beside:expr, $looks:expr, $reader:path;)+) => {
        /// A tool whose exports are read.
        ///
        /// ```
        /// use grainstore_interop::migrate::Format;
        ///
        /// let format: Format = "mem0".parse()?;
        /// assert_eq!((format, format.name()), (Format::Mem0, "mem0"));
        /// assert!("mem1".parse::<Format>().is_err_and(|error| error.to_string().contains("mem0")));
        /// for format in Format::ALL {
        ///     println!("{format}: {}", format.reads());
        /// }
        /// # Ok::<(), grainstore_interop::Error>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $(#[doc = $reads] $variant),+
        }

        impl Format {
            /// All formats.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn info(self) -> &'static Info {
                match self {
                    $(Self::$variant => &Info {
                        format: Self::$variant,
                        name: $name,
                        title: $title,
                        reads: $reads,
                        beside: $beside,
                        looks: $looks,
                        reader: $reader,
                    }),+
                }
            }
        }
    };
}

formats! {
    Mem0 "mem0" "an export of mem0",
        "mem0: the JSON of `get_all`, a list of memories, or an export of the platform",
        Some("the history table, as JSON, JSON lines or CSV"),
        Looks::Names { files: &[], sets: &[&["results[].memory"], &["[].memory"], &["memory", "id"],
            &["memories[].memory"]], also: &["relations", "text", "data", "memory_id"] },
        formats::mem0::read;
    ServerMemory "server-memory" "a file of the MCP memory server",
        "MCP server-memory: its JSON lines of entities and relations",
        None,
        Looks::Names { files: &[], sets: &[&["entityType"], &["relationType"]],
            also: &["type", "observations"] },
        formats::server_memory::read;
    Letta "letta" "a Letta agent file",
        "Letta: an agent file (.af), of the newer or the older schema",
        Some("the archival passages, as JSON or JSON lines"),
        Looks::Names { files: &[], sets: &[&["agents", "blocks"], &["agent_type", "core_memory"],
            &["agents[].agent_type"], &["\""]], also: &["messages"] },
        formats::letta::read;
    Jsonl "jsonl" "JSON lines",
        "Any JSON lines, a JSON list or CSV, by a mapping of its fields",
        Some("the mapping, as JSON"),
        Looks::Anything,
        formats::jsonl::read;
    LangGraph "langgraph" "a dump of a LangGraph store",
        "LangGraph and LangMem: rows of the table `store`, as JSON, JSON lines or CSV",
        None,
        Looks::Names { files: &[], sets: &[&["prefix", "key", "value"], &["[].prefix", "[].key"],
            &["namespace", "key", "value"], &["[].namespace", "[].key"], &["store[].prefix"]],
            also: &["items", "rows"] },
        formats::langgraph::read;
    Claude "claude" "an export of a Claude account",
        "Claude: the export of an account, a ZIP archive, a folder or its conversations.json",
        None,
        Looks::Names { files: &["conversations.json"], sets: &[&["[].chat_messages"]],
            also: &["uuid", "conversations_memory", "project_memories"] },
        formats::claude::read;
    ChatGpt "chatgpt" "an export of a ChatGPT account",
        "ChatGPT: the export of an account, a ZIP archive, a folder or its conversations.json",
        Some("the memories that ChatGPT saved: a list as JSON, or pasted lines"),
        Looks::Names { files: &["conversations.json", "conversations-000.json"],
            sets: &[&["[].mapping"]],
            also: &["conversations", "memories", "results", "content", "memory", "text"] },
        formats::chatgpt::read;
    BasicMemory "basic-memory" "a folder of basic-memory",
        "basic-memory: a folder or a ZIP archive of its Markdown notes",
        None,
        Looks::Markdown { names: &[], front: &["permalink"] },
        formats::basic_memory::read;
    MemFs "memfs" "a folder of Letta's MemFS",
        "Letta MemFS: the folder of `letta memory export`, or a ZIP archive of it",
        None,
        Looks::Markdown { names: &["MEMORY.md", "system/", "skills/"], front: &[] },
        formats::memfs::read;
}

impl Format {
    /// Its name, as it is given to `grain migrate`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// What it reads, in one line.
    #[must_use]
    pub fn reads(self) -> &'static str {
        self.info().reads
    }

    /// The second file that it reads ([`MigrateOptions::beside`](super::MigrateOptions::beside)), if it has one.
    #[must_use]
    pub fn beside(self) -> Option<&'static str> {
        self.info().beside
    }

    /// What it is, as in "it looks like ...".
    pub(crate) fn title(self) -> &'static str {
        self.info().title
    }

    /// The format that a file, a folder or an archive looks like, if it looks like one.
    pub(crate) fn that_fits(path: &Path) -> Option<Self> {
        let source = Source::open(path, Limits::default()).ok()?;
        let look = Look::of(&source).ok()?;
        let mut all = Self::ALL.iter().map(|format| format.info());
        let found =
            all.find(|info| !matches!(info.looks, Looks::Anything) && info.looks.fit(&look));
        found.map(|info| info.format)
    }

    /// Endings of the names of the files that it reads of a folder or an archive.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Letta => &["af", "json"],
            Self::Claude | Self::ChatGpt => &["json"],
            Self::BasicMemory | Self::MemFs => &["md"],
            Self::Mem0 | Self::ServerMemory | Self::Jsonl | Self::LangGraph => &rows::ENDINGS,
        }
    }

    /// Checks that a file is none that another command reads, and a folder no store.
    ///
    /// # Errors
    /// `ERR_SCHEMA`, with what it is and what reads it.
    pub(super) fn check_kind(self, path: &Path) -> Result<()> {
        match Kind::ours(path) {
            // The line that makes JSON of its table is told below.
            None | Some(Kind::Database) => Ok(()),
            // By a mapping any lines and objects are read.
            Some(kind) if self == Self::Jsonl && kind != Kind::Store => Ok(()),
            Some(kind) => Err(other::refusal(kind, path, self.title())),
        }
    }

    /// Checks that a folder or an archive has a file that is read.
    fn check_files(self, source: &Source) -> Result<()> {
        let endings = self.endings();
        let is_read = |file: &SourceFile| endings.iter().any(|ending| file.has_extension(ending));
        if source.single().is_some() || source.files().iter().any(is_read) {
            return Ok(());
        }
        let endings = endings.join(", .");
        let message = format!("it is not {}: there is no file .{endings} in it", self.title());
        Err(Error::schema(message).with_hint("name the folder or the archive that was exported"))
    }

    /// Checks that an export may be one of this format.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if it looks like one of another format, which the message names, or has nothing of this one.
    pub(super) fn check(self, source: &Source) -> Result<()> {
        self.check_no_database(source)?;
        self.check_files(source)?;
        let look = Look::of(source)?;
        if self.info().looks.fit(&look) {
            return Ok(());
        }
        let others = Self::ALL.iter().map(|format| format.info());
        let mut others = others.filter(|info| !matches!(info.looks, Looks::Anything));
        match others.find(|info| info.looks.fit(&look)) {
            None => match source.single() {
                Some(file) if !self.info().looks.may_be(&look) => Err(Error::schema(format!(
                    "it is not {}: it has none of the names of one",
                    self.info().title
                ))
                .with_hint("name the format that the file is of")
                .in_entry(&file.name)),
                _ => Ok(()),
            },
            Some(info) => Err(Error::schema(format!(
                "it is not {}: it looks like {}, whose format is `{}`",
                self.info().title,
                info.title,
                info.format
            ))
            .with_hint("name the format that the file is of")),
        }
    }

    /// Checks that there is a second file only where the format reads one.
    ///
    /// # Errors
    /// `ERR_SCHEMA`.
    pub(super) fn check_beside(self, ask: &Ask<'_>) -> Result<()> {
        match (ask.beside, self.beside()) {
            (Some(_), None) => Err(Error::schema(format!("{self} reads one file alone"))),
            (Some(beside), Some(_)) => self.check_no_database(beside),
            (None, _) => Ok(()),
        }
    }

    /// Checks that a file is no SQLite database.
    ///
    /// # Errors
    /// `ERR_SCHEMA`, with the line that makes JSON of its table.
    fn check_no_database(self, source: &Source) -> Result<()> {
        let Some(file) = source.single() else { return Ok(()) };
        if !source.beginning(file, LOOK_BYTES)?.starts_with(DATABASE) {
            return Ok(());
        }
        let hint = match self {
            Self::Mem0 => formats::mem0::HOW_TO_WRITE,
            Self::LangGraph => {
                "write its table as JSON: `sqlite3 -json FILE \"SELECT prefix, key, CAST(value AS TEXT) AS value, \
                 created_at, updated_at, expires_at FROM store\" > store.json`"
            }
            _ => Kind::Database.hint(),
        };
        let error = Error::schema("it is an SQLite database, which is not read itself");
        Err(error.with_hint(hint).in_entry(&file.name))
    }

    /// Reads an export.
    ///
    /// # Errors
    /// Those of the reader and of the sink.
    pub(super) fn read(self, ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
        (self.info().reader)(ask, sink)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Serialized as its name.
impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            let kind = ErrorKind::Format(grainstore::format::ErrorKind::Schema);
            Error::new(kind, format!("{name:?} is no format: there are {}", names.join(", ")))
                .with_hint("name one of them")
        })
    }
}
