//! DESCRIBE (CAL 8.6): the tables of the language and the properties of the host, as JSON.

use grainstore_format::GrainType;
use grainstore_sml::{
    MAX_TEMPLATE_BYTES, MAX_TEMPLATE_DEPTH, MAX_TEMPLATE_EACH, RowFormat, Section,
    TEMPLATE_CHARS_A_TOKEN, template_variables,
};
use serde_json::{Value, json};

use super::Executor;
use crate::ast::{Describe, Format, FormatName};
use crate::check::domain::DOMAINS;
use crate::error::Result;
use crate::fields::{self, FieldRef, ValueKind};
use crate::grammar::GRAMMAR;
use crate::limits;
use crate::memory::NamedTemplate;
use crate::response::Answer;
use crate::tier::Tier;
use crate::types::TYPE_NAMES;

impl Executor<'_> {
    /// Runs a DESCRIBE statement.
    pub(super) fn describe(&self, target: &Describe) -> Result<Answer> {
        let description = match target {
            Describe::GrainTypes => json!({ "grain_types": grain_types() }),
            Describe::Fields(None) => {
                json!({ "fields": rows(None), "domains": domains() })
            }
            Describe::Fields(Some(name)) => {
                let grain_type = name.node.grain_type;
                json!({ "grain_type": grain_type.name(), "fields": rows(Some(grain_type)) })
            }
            Describe::Capabilities => self.capabilities()?,
            Describe::Server => self.server()?,
            Describe::Templates => self.templates()?,
            Describe::Grammar => json!({ "grammar": GRAMMAR }),
        };
        Ok(Answer::Description { description })
    }

    fn capabilities(&self) -> Result<Value> {
        let host = self.memory.describe()?;
        let writes = self.writes.limits();
        let tiers: &[u8] = match self.options.tier {
            Tier::Read => &[0],
            Tier::Evolve => &[0, 1],
        };
        let usual = limits::DEFAULT_LIMIT;
        Ok(json!({
            "cal_version": "1.0",
            "cal_conformance": host.cal_conformance,
            "exceptions": host.exceptions,
            "tiers": tiers,
            "token_counter": self.options.counter.name(),
            "formats": Format::ALL.map(Format::name),
            "row_formats": RowFormat::ALL.map(RowFormat::name),
            "full_text": host.full_text,
            "embedding_model": host.embedding_model,
            "supported_languages": host.supported_languages,
            "cross_lingual_search": host.cross_lingual_search,
            "auto_toon_enabled": self.options.auto_toon,
            "consistency": "linearizable",
            "cache": false,
            "paging": "OFFSET",
            "writes_a_minute": {
                "add": writes.adds,
                "supersede": writes.supersedes,
                "revert": writes.reverts,
            },
            "limits": {
                "query_bytes": limits::MAX_QUERY_BYTES,
                "parameters": limits::MAX_PARAMETERS,
                "default_limit": self.options.default_limit.map_or(usual, |few| few.min(usual)),
                "max_limit": limits::MAX_LIMIT,
                "stages": limits::MAX_STAGES,
                "in_values": limits::MAX_IN_VALUES,
                "subqueries": limits::MAX_SUBQUERY_DEPTH,
                "lets": limits::MAX_LETS,
                "set_operands": limits::MAX_OPERANDS,
                "batch_entries": limits::MAX_BATCH_ENTRIES,
                "coalesce_branches": limits::MAX_COALESCE_BRANCHES,
                "sources": limits::MAX_SOURCES,
            },
        }))
    }

    /// Describes the presets, and the templates that this session can name.
    fn templates(&self) -> Result<Value> {
        let templates =
            self.memory.templates()?.into_iter().map(
                |of| json!({ "name": of.name, "kept": of.keeper, "definition": of.definition }),
            );
        Ok(json!({
            "templates": templates.collect::<Vec<_>>(),
            "presets": FormatName::PRESETS.map(FormatName::name),
            "sections": Section::ALL.map(Section::keyword),
            "variables": template_variables().collect::<Vec<_>>(),
            "limits": {
                "bytes": MAX_TEMPLATE_BYTES,
                "templates": NamedTemplate::MAX_PER_OWNER,
                "name_characters": limits::MAX_NAME_CHARS,
                "nesting": MAX_TEMPLATE_DEPTH,
                "each": MAX_TEMPLATE_EACH,
                "characters_a_token": TEMPLATE_CHARS_A_TOKEN,
            },
        }))
    }

    fn server(&self) -> Result<Value> {
        let host = self.memory.describe()?;
        let scope = self.memory.scope();
        Ok(json!({
            "name": host.name,
            "version": host.version,
            "namespaces": host.namespaces,
            "session": {
                "namespace": scope.namespace,
                "user_id": scope.user_id,
                "actor": scope.actor,
                "agent_id": scope.agent_id,
            },
        }))
    }
}

/// Describes the ten types, each with its names.
fn grain_types() -> Vec<Value> {
    let row = |name: &&crate::types::TypeName| {
        let old = TYPE_NAMES.iter().filter(|old| old.old && old.grain_type == name.grain_type);
        json!({
            "name": name.singular,
            "plural": name.plural,
            "byte": name.grain_type.byte(),
            "old_names": old.map(|old| old.singular).collect::<Vec<_>>(),
        })
    };
    TYPE_NAMES.iter().filter(|name| !name.old).map(|name| row(&name)).collect()
}

/// Describes the fields of a type, common ones included; without a type the common ones alone.
fn rows(grain_type: Option<GrainType>) -> Vec<Value> {
    fields::names_for(grain_type).filter_map(fields::by_name).map(row).collect()
}

fn row(field: FieldRef) -> Value {
    let mut row = json!({
        "name": field.name,
        "payload": field.payload,
        "type": field.owner.map(GrainType::name),
        "holds": value_kind(field.shape),
        "operators": field.operator_names().collect::<Vec<_>>(),
        "sortable": field.sortable,
        "groupable": fields::GROUPABLE.contains(&field.name),
        "selectable": fields::is_projectable(field),
    });
    if let (ValueKind::ClosedList(vocabulary), Some(row)) = (field.shape, row.as_object_mut()) {
        row.insert("values".to_owned(), json!(vocabulary.values));
    }
    row
}

fn value_kind(shape: ValueKind) -> &'static str {
    match shape {
        ValueKind::Text => "text",
        ValueKind::ClosedList(_) => "one of its values",
        ValueKind::Address | ValueKind::Hash => "a content address",
        ValueKind::Number { unit: true } => "a number from 0 to 1",
        ValueKind::Number { unit: false } => "a number",
        ValueKind::Flag => "true or false",
        ValueKind::List => "a list of texts",
        ValueKind::Time => "a time",
        ValueKind::Type => "a grain type",
        ValueKind::Search => "text, whose words are searched for",
        ValueKind::Score => "a number from 0 to 1, known once the search has answered",
    }
}

fn domains() -> Vec<Value> {
    let row = |(prefix, profile)| json!({ "prefix": prefix, "tag": format!("profile:{profile}") });
    DOMAINS.into_iter().map(row).collect()
}
