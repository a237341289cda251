//! The formats, one table: the name of each, what it reads, how its exports look, and its reader.
//!
//! Knows how an export looks from outside; what is in it is the matter of `formats`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use grainstore::ErrorKind;
use serde::{Serialize, Serializer};

use super::formats;
use super::record::Sink;
use super::source::{Source, SourceFile};
use crate::error::{Error, Result};
use crate::json;

/// Bytes of a file that are looked at to tell its format.
const LOOK_BYTES: u64 = 64 << 10;

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

/// How an export looks.
enum Looks {
    /// One of these sets of names is in a JSON document, or the first line, or the first row of a table. With the names of
    /// the files to look in if it is a folder or an archive.
    /// A single document that is an object and has none of the names of the sets, nor of `also`, is of no such format.
    Names {
        files: &'static [&'static str],
        sets: &'static [&'static [&'static str]],
        also: &'static [&'static str],
    },
    /// A folder of Markdown whose files have one of these in their names, or in their front matter.
    Markdown { names: &'static [&'static str], front: &'static [&'static str] },
    /// Like anything.
    Anything,
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

    /// Checks that an export may be one of this format.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if it looks like one of another format, which the message names, or has nothing of this one.
    pub(super) fn check(self, source: &Source) -> Result<()> {
        self.check_no_database(source)?;
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
        if !source.beginning(file, LOOK_BYTES)?.starts_with(b"SQLite format 3\0") {
            return Ok(());
        }
        let hint = match self {
            Self::Mem0 => formats::mem0::HOW_TO_WRITE,
            Self::LangGraph => {
                "write its table as JSON: `sqlite3 -json FILE \"SELECT prefix, key, CAST(value AS TEXT) AS value, \
                 created_at, updated_at, expires_at FROM store\" > store.json`"
            }
            _ => {
                "write a table of it as JSON: `sqlite3 -json FILE \"SELECT * FROM TABLE\" > rows.json`"
            }
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

/// How a source looks: the names in the beginning of its files.
struct Look {
    /// For each file that tells: its last name, and the names in it.
    documents: Vec<(String, BTreeSet<String>)>,
    /// Whether the last of them begins as an object with names.
    is_object: bool,
    markdown: Vec<String>,
    front: String,
}

impl Look {
    fn of(source: &Source) -> Result<Self> {
        let tells = |file: &&SourceFile| {
            source.single().is_some() || file.base_name().starts_with("conversations")
        };
        let (mut documents, mut is_object) = (Vec::new(), false);
        for file in source.files().iter().filter(tells).take(4) {
            let beginning = source.beginning(file, LOOK_BYTES)?;
            let outline =
                json::outline(beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning));
            is_object = outline.iter().any(|name| !name.starts_with(['[', '"']));
            documents.push((file.base_name().to_owned(), names_in(&beginning)));
        }
        let notes = || source.files().iter().filter(|file| file.has_extension("md"));
        let mut front = String::new();
        for file in notes().take(4) {
            let beginning = source.beginning(file, LOOK_BYTES / 16)?;
            let text = String::from_utf8_lossy(&beginning);
            let block = text.strip_prefix("---").and_then(|text| text.split("\n---").next());
            front.push_str(block.unwrap_or_default());
        }
        let markdown = notes().map(|file| file.name.clone()).collect();
        Ok(Self { documents, is_object, markdown, front })
    }
}

/// The names in the beginning of a document, of JSON lines, or of a table.
fn names_in(beginning: &[u8]) -> BTreeSet<String> {
    let found = json::outline(beginning);
    if !found.is_empty() {
        return found;
    }
    let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns = String::from_utf8_lossy(first);
    columns
        .split(',')
        .map(|name| name.trim_matches(['"', ' ', '\r', '\u{feff}']).to_owned())
        .collect()
}

impl Looks {
    /// Returns `false` for an object that has none of the names that one of this format may have.
    fn may_be(&self, look: &Look) -> bool {
        let Self::Names { sets, also, .. } = self else { return true };
        let known = sets.iter().flat_map(|set| set.iter()).flat_map(|place| place.split("[]."));
        let known: BTreeSet<&str> = known.chain(also.iter().copied()).collect();
        look.documents.iter().any(|(_, names)| {
            let is_object = look.is_object && !names.is_empty();
            !is_object || names.iter().any(|name| known.contains(name.as_str()))
        })
    }

    fn fit(&self, look: &Look) -> bool {
        match self {
            Self::Anything => true,
            Self::Names { files, sets, .. } => look.documents.iter().any(|(name, names)| {
                let has = |set: &&[&str]| set.iter().all(|name| names.contains(*name));
                let is_named =
                    look.documents.len() == 1 || files.is_empty() || files.contains(&name.as_str());
                is_named && sets.iter().any(has)
            }),
            Self::Markdown { names, front } => {
                let has_name = |name: &&str| look.markdown.iter().any(|file| file.contains(name));
                let has_field = |field: &&str| {
                    look.front.lines().any(|line| line.starts_with(&format!("{field}:")))
                };
                names.iter().any(has_name) || front.iter().any(has_field)
            }
        }
    }
}
