//! Letta: agent files (`.af`) of the newer schema and of the one before, also ones that are a text within JSON; beside them
//! the archival passages, which an agent file does not have.
//!
//! Messages become events, core memory states, skills procedures, passages what the agent knows.

mod kept;
mod message;
mod passages;

use grainstore::EpochMs;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::json;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text, texts};
use crate::migrate::source::{Source, SourceFile};
use crate::migrate::time::{Dated, Unit, instant};
use kept::Kept;
use passages::passages;

/// Most bytes of an agent file, which is read as a whole: its parts point at each other.
const MAX_AGENT_FILE_BYTES: u64 = 64 << 20;
/// How often a file may be a text within JSON.
const MAX_WRAPPINGS: usize = 3;

/// Parts of an agent file that are no memory, with the reason why they stay behind.
#[rustfmt::skip]
const NO_MEMORY: [(&str, &str); 7] = [
    ("tools", "a tool is a program, no memory"),
    ("mcp_servers", "a server's address and its secrets are no memory"),
    ("files", "the text of a file is not in an agent file"),
    ("files_agents", "which files an agent had open is no memory"),
    ("sources", "a source lists files, whose text is not in an agent file"),
    ("groups", "a group is how agents are run, no memory"),
    ("tool_exec_environment_variables", "variables may be secrets, and are no memory"),
];

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let mut first_agent = None;
    for file in ask.source.files() {
        let is_agent_file = file.has_extension("af") || file.has_extension("json");
        if ask.source.single().is_none() && !is_agent_file {
            sink.skip(&file.name, "it is no agent file")?;
            continue;
        }
        let document = document(ask.source, file).map_err(|error| match error.entry() {
            None => error.in_entry(&file.name),
            Some(_) => error,
        })?;
        let agent_file = AgentFile::of(&document, file);
        agent_file.read(ask, sink)?;
        first_agent = first_agent.or_else(|| agent_file.agents.first().map(Agent::subject));
    }
    match ask.beside {
        Some(beside) => passages(ask, beside, first_agent.as_deref().unwrap_or("agent"), sink),
        None => Ok(()),
    }
}

/// Reads an agent file out of its wrappings.
fn document(source: &Source, file: &SourceFile) -> Result<Map<String, Value>> {
    let mut bytes = source.read(file, MAX_AGENT_FILE_BYTES)?;
    for _ in 0..MAX_WRAPPINGS {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        match json::parse_within(text, MAX_AGENT_FILE_BYTES.saturating_mul(2))? {
            Value::Object(members) => {
                if !["agents", "messages", "core_memory"]
                    .iter()
                    .any(|name| members.contains_key(*name))
                {
                    return Err(Error::schema(
                        "it is no agent file: it has neither agents, nor messages and core_memory",
                    ));
                }
                return Ok(members);
            }
            Value::String(text) => bytes = text.into_bytes(),
            _ => break,
        }
    }
    Err(Error::schema("an agent file is an object"))
}

/// An agent file of either schema.
struct AgentFile<'d> {
    document: &'d Map<String, Value>,
    agents: Vec<Agent<'d>>,
    /// When the file was made: the date of what has none.
    made: Dated,
    file: &'d SourceFile,
}

/// An agent of an agent file.
struct Agent<'d> {
    members: &'d Map<String, Value>,
    /// The agent's id, or what it is called.
    id: String,
    /// What it is called: its name, or that of the file.
    name: String,
}

impl Agent<'_> {
    fn subject(&self) -> String {
        self.name.clone()
    }

    fn who(&self, ask: &Ask<'_>) -> Who {
        let user = ask.user.map(str::to_owned);
        Who { user, agent: Some(self.id.clone()), ..Who::default() }
    }
}

impl<'d> AgentFile<'d> {
    fn of(document: &'d Map<String, Value>, file: &'d SourceFile) -> Self {
        let listed = objects(document.get("agents"));
        let all = if document.contains_key("agents") { listed } else { vec![document] };
        let agents = (1..).zip(all).map(|(number, members): (usize, _)| {
            let named = text(members, "name").map(str::to_owned);
            let name = named.unwrap_or_else(|| format!("{} {number}", file.stem()));
            let id = own_id(members).map_or_else(|| name.clone(), str::to_owned);
            Agent { members, id, name }
        });
        let made = Dated::of(document.get("created_at"), Unit::Seconds);
        let made = made.or(|| Dated::of_file(file.modified));
        Self { document, agents: agents.collect(), made, file }
    }

    fn read(&self, ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
        for agent in &self.agents {
            self.prompt(agent, ask, sink)?;
            for (number, block) in (1..).zip(objects(agent.members.get("core_memory"))) {
                self.block(block, number, &[agent], ask, sink)?;
            }
            let place = self.place(&agent.id);
            let messages = message::Thread::of(&agent.id, &place, agent.who(ask));
            messages.read(agent.members.get("messages"), sink)?;
            self.stay_behind(agent.members, sink)?;
        }
        for (number, block) in (1..).zip(objects(self.document.get("blocks"))) {
            let id = text(block, "id").unwrap_or_default();
            let has_it = |agent: &&Agent<'_>| {
                !id.is_empty() && texts(agent.members.get("block_ids")).iter().any(|own| own == id)
            };
            let owners: Vec<_> = self.agents.iter().filter(has_it).collect();
            self.block(block, number, &owners, ask, sink)?;
        }
        for (number, skill) in (1..).zip(objects(self.document.get("skills"))) {
            self.skill(skill, number, ask, sink)?;
        }
        match self.document.contains_key("agents") {
            true => {
                self.stay_behind(self.document, sink)?;
                self.of_file(sink)
            }
            false => Ok(()),
        }
    }

    /// Tells of what a file says of itself.
    fn of_file(&self, sink: &mut dyn Sink) -> Result<()> {
        let read = ["agents", "blocks", "skills", "created_at"];
        let known = read.into_iter().chain(NO_MEMORY.into_iter().map(|(part, _)| part));
        let known: Vec<_> = known.collect();
        for name in rest(self.document, &known).keys() {
            sink.skip(&self.place(name), "it is of the file, and of no agent")?;
        }
        Ok(())
    }

    fn place(&self, part: &str) -> String {
        format!("{}: {part}", self.file.name)
    }

    fn date(&self, members: &Map<String, Value>) -> Dated {
        Dated::of(members.get("created_at"), Unit::Seconds).or(|| self.made.clone())
    }

    /// The system prompt and the model of an agent (OMS 22.9), and what else is said of it.
    fn prompt(&self, agent: &Agent<'_>, ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
        let place = self.place(&agent.id);
        let Kept { rest, secrets } = Kept::of(agent.members);
        for secret in &secrets {
            sink.skip(
                &format!("{place}: {secret}"),
                "its name speaks of a secret, which is no memory",
            )?;
        }
        let prompt = text(agent.members, "system");
        if prompt.is_none() && kept::is_names_alone(&rest) {
            return Ok(());
        }
        let prompt = prompt.map(|prompt| ("system_prompt".to_owned(), Value::from(prompt)));
        let mut context = Map::from_iter(prompt);
        let config = agent.members.get("llm_config").and_then(Value::as_object);
        if let Some(model) = config.and_then(|config| text(config, "model")) {
            context.insert("model".to_owned(), Value::from(model));
        }
        let body = Body::State { subject: agent.subject(), context };
        let record = Record {
            who: agent.who(ask),
            rest,
            updated: date_of(agent.members, "updated_at"),
            ..Record::new(place, "agent", body, self.date(agent.members))
        };
        sink.record(format!("agent {}", agent.id), record)
    }

    /// A block of core memory: the agent has it before it all the time.
    fn block(
        &self,
        block: &Map<String, Value>,
        number: usize,
        owners: &[&Agent<'_>],
        ask: &Ask<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let place = self.place(&format!("block {number}"));
        let Some(label) = text(block, "label") else {
            return sink.misshapen(&place, "the block has no label");
        };
        let Some(said) = text(block, "value") else {
            return sink.skip(&place, "the block is empty");
        };
        let owner = owners.first();
        let agent = owner.map(|agent| agent.id.as_str());
        let id = own_id(block).map_or_else(
            || Value::from(vec![agent.unwrap_or_default(), label]).to_string(),
            str::to_owned,
        );
        let blocks = Map::from_iter([(label.to_owned(), Value::from(said))]);
        let context = Map::from_iter([("memory_blocks".to_owned(), Value::Object(blocks))]);
        let subject = owner.map_or_else(|| label.to_owned(), |agent| agent.subject());
        let mut left = rest(block, &["id", "label", "value", "tags", "created_at", "updated_at"]);
        if owners.len() > 1 {
            let all: Vec<_> = owners.iter().map(|agent| agent.id.as_str()).collect();
            left.insert("agents".to_owned(), Value::from(all));
        }
        let mut who = owner.map(|agent| agent.who(ask)).unwrap_or_default();
        who.user = ask.user.map(str::to_owned);
        let body = Body::State { subject, context };
        let record = Record {
            who,
            tags: texts(block.get("tags")),
            rest: left,
            priority: Some("hot"),
            updated: date_of(block, "updated_at"),
            ..Record::new(place, "core memory block", body, self.date(block))
        };
        sink.record(format!("block {id}"), record)
    }

    fn skill(
        &self,
        skill: &Map<String, Value>,
        number: usize,
        ask: &Ask<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let place = self.place(&format!("skill {number}"));
        let Some(name) = text(skill, "name") else {
            return sink.misshapen(&place, "the skill has no name");
        };
        let files = skill.get("files").and_then(Value::as_object);
        let written = files.and_then(|files| text(files, "SKILL.md"));
        let steps =
            written.or_else(|| text(skill, "content")).or_else(|| text(skill, "description"));
        let Some(steps) = steps else {
            return sink.skip(&place, "the text of the skill is not in the file");
        };
        let trigger = text(skill, "description").unwrap_or(name).to_owned();
        let body = Body::Procedure { trigger, steps: vec![steps.to_owned()] };
        let record = Record {
            who: Who { user: ask.user.map(str::to_owned), ..Who::default() },
            rest: rest(skill, &["content", "created_at"]),
            ..Record::new(place, "skill", body, self.date(skill))
        };
        sink.record(format!("skill {name}"), record)
    }

    /// Tells of the parts that are no memory.
    fn stay_behind(&self, members: &Map<String, Value>, sink: &mut dyn Sink) -> Result<()> {
        for (part, why) in NO_MEMORY {
            let count = match members.get(part) {
                Some(Value::Array(items)) => items.len(),
                Some(Value::Object(items)) => items.len(),
                _ => 0,
            };
            for number in 1..=count {
                sink.skip(&self.place(&format!("{part} {number}")), why)?;
            }
        }
        Ok(())
    }
}

/// The id of a part of an agent file, if it says which part it is beyond the file: most files count their parts
/// (`agent-0`, `message-12`), each file from 0.
fn own_id(members: &Map<String, Value>) -> Option<&str> {
    let id = text(members, "id")?;
    let (_, unique) = id.split_once('-')?;
    let is_unique = unique.len() == 36 && unique.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    is_unique.then_some(id)
}

fn date_of(members: &Map<String, Value>, name: &str) -> Option<EpochMs> {
    members.get(name).and_then(|at| instant(at, Unit::Seconds))
}

/// The objects of a list.
fn objects(value: Option<&Value>) -> Vec<&Map<String, Value>> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_object).collect()
}
