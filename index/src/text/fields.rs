//! The fields of a grain that carry language, with the weight of a word in each: one table. Knows nothing of
//! text analysis.

use grainstore_format::{
    ContentAddress, DeviceProfile, GrainRef, GrainType, ValueRef, fields, is_domain_field,
};

use super::settings::Settings;

/// The weight of a word in a plain field. A word shared by a neighbour in a conversation has weight 1, so
/// this is the ratio of the grain's own words to those.
const PLAIN_WEIGHT: u32 = 6;
/// The weight of fields that state in few words what the grain is about.
const TITLE_WEIGHT: u32 = 8;
/// The weight of fields beside the main content.
const ASIDE_WEIGHT: u32 = 4;
/// The weight of long fields that are mostly not prose.
const BULK_WEIGHT: u32 = 2;
/// The weight of text that repeats another field.
const REPEATED_WEIGHT: u32 = 1;

/// The extraction of texts from a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextExtraction {
    /// All strings in it, at any depth: a string, a list, the leaves of a map.
    Leaves,
    /// Like `Leaves`, except addresses of grains, which are links and not text.
    Reasons,
    /// `content_blocks`: the words of the message, and the inputs and outputs of its tools.
    Blocks,
    /// A list of maps, or a map, in which these entries are text, at any depth.
    Entries(&'static [&'static str]),
}

/// A field that carries language.
struct TextField {
    name: &'static str,
    /// The only grain type it carries language on; `None` for all types.
    grain_type: Option<GrainType>,
    extraction: TextExtraction,
    weight: u32,
    /// True for the reasoning of a model, which is indexed only if the settings ask for it.
    thinking: bool,
    /// True for the utterance of a turn in a conversation, which is shared with its neighbours: they are
    /// found by it too.
    is_utterance: bool,
}

const fn field(name: &'static str, weight: u32) -> TextField {
    TextField {
        name,
        grain_type: None,
        extraction: TextExtraction::Leaves,
        weight,
        thinking: false,
        is_utterance: false,
    }
}

const fn field_on(on: GrainType, name: &'static str, weight: u32) -> TextField {
    TextField { grain_type: Some(on), ..field(name, weight) }
}

const fn utterance(name: &'static str, shape: TextExtraction) -> TextField {
    TextField {
        extraction: shape,
        is_utterance: true,
        ..field_on(GrainType::Event, name, PLAIN_WEIGHT)
    }
}

const fn reasons(name: &'static str, weight: u32) -> TextField {
    TextField { extraction: TextExtraction::Reasons, ..field(name, weight) }
}

const fn entries(name: &'static str, names: &'static [&'static str], weight: u32) -> TextField {
    TextField { extraction: TextExtraction::Entries(names), ..field(name, weight) }
}

/// The entries that describe a picture, a recording or a document.
const CAPTIONS: &[&str] =
    &["caption", "title", "description", "alt", "alt_text", "transcript", "text"];

/// Every field that carries language, by the sections of OMS 6. Names of partitions, people, sessions and
/// grains, times and states are found by filters, not by words.
#[rustfmt::skip]
static TEXT_FIELDS: [TextField; 54] = [
    field("subject", TITLE_WEIGHT),
    field("relation", TITLE_WEIGHT),
    field("object", TITLE_WEIGHT),
    utterance("content_blocks", TextExtraction::Blocks),
    utterance("content", TextExtraction::Leaves),
    field_on(GrainType::Action, "content", BULK_WEIGHT),
    field("content", PLAIN_WEIGHT),
    field("description", TITLE_WEIGHT),
    field("conclusion", TITLE_WEIGHT),
    field("trigger", TITLE_WEIGHT),
    field("steps", PLAIN_WEIGHT),
    field("plan", PLAIN_WEIGHT),
    field("agreed_content", PLAIN_WEIGHT),
    field("criteria", PLAIN_WEIGHT),
    reasons("premises", ASIDE_WEIGHT),
    field("structural_tags", PLAIN_WEIGHT),
    entries("content_refs", CAPTIONS, PLAIN_WEIGHT),
    entries("embedding_refs", &["chunk_text"], BULK_WEIGHT),
    field("tool_name", TITLE_WEIGHT),
    field("tool_description", PLAIN_WEIGHT),
    field("input", ASIDE_WEIGHT),
    field("error", ASIDE_WEIGHT),
    field("error_type", ASIDE_WEIGHT),
    field("code", BULK_WEIGHT),
    field("stdout", BULK_WEIGHT),
    field("stderr", BULK_WEIGHT),
    entries("input_schema", &["description", "title"], BULK_WEIGHT),
    entries("output_schema", &["description", "title"], BULK_WEIGHT),
    field("criteria_structured", ASIDE_WEIGHT),
    field("expected_output", ASIDE_WEIGHT),
    field("state_reason", ASIDE_WEIGHT),
    reasons("satisfaction_evidence", BULK_WEIGHT),
    field("rollback_on_failure", BULK_WEIGHT),
    field("alternatives_considered", ASIDE_WEIGHT),
    field("inference_method", BULK_WEIGHT),
    TextField { thinking: true, ..field("thinking_content", BULK_WEIGHT) },
    field("scope", ASIDE_WEIGHT),
    field("basis", ASIDE_WEIGHT),
    field("jurisdiction", ASIDE_WEIGHT),
    field("observer_id", ASIDE_WEIGHT),
    field("observer_type", ASIDE_WEIGHT),
    field("observation_scope", BULK_WEIGHT),
    field("history", BULK_WEIGHT),
    field("context", BULK_WEIGHT),
    entries("owner", &["name", "legal_name"], BULK_WEIGHT),
    entries("provenance_chain", &["note", "description"], BULK_WEIGHT),
    field("supersession_justification", BULK_WEIGHT),
    field("invalidation_reason", BULK_WEIGHT),
    field("authorized_tools", BULK_WEIGHT),
    entries("related_to", &["note", "label", "description"], BULK_WEIGHT),
    entries("parameter_set", &["description"], BULK_WEIGHT),
    entries("software_environment", &["language"], BULK_WEIGHT),
    entries("statistical_context", &["description"], BULK_WEIGHT),
    entries("retention_policy", &["regulation"], BULK_WEIGHT),
];

/// A text of a grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldText<'a> {
    pub(super) text: &'a str,
    /// The field it is in, by its full name.
    pub(super) field: &'a str,
    /// The index of that field in the table; fields outside the table come last.
    pub(super) field_index: usize,
    /// The weight of each of its words.
    pub(super) weight: u32,
    /// True if its words are shared with the neighbours in a conversation.
    pub(super) is_utterance: bool,
}

/// Passes every indexed text of a grain to `sink`, in the order of the grain's bytes.
///
/// All texts in fields of domain profiles and in fields the standard does not know are indexed with
/// [`ASIDE_WEIGHT`].
pub(super) fn for_each_text<'a>(
    grain: &GrainRef<'a>,
    settings: &Settings,
    sink: &mut dyn FnMut(FieldText<'a>),
) {
    let grain_type = grain.grain_type();
    let blocks = grain_type == GrainType::Event
        && grain.get("content_blocks").is_some_and(|blocks| has_block_text(&blocks));
    for (name, value) in grain.iter() {
        let row = TEXT_FIELDS
            .iter()
            .enumerate()
            .find(|(_, row)| row.name == name && row.grain_type.is_none_or(|on| on == grain_type));
        let mut found = FieldText {
            text: "",
            field: name,
            field_index: TEXT_FIELDS.len(),
            weight: ASIDE_WEIGHT,
            is_utterance: false,
        };
        let Some((rank, row)) = row else {
            if is_domain_field(name) || !fields::FIELDS.iter().any(|known| known.name == name) {
                leaves(&value, &mut |text| sink(FieldText { text, ..found }));
            }
            continue;
        };
        if row.thinking && !settings.thinking {
            continue;
        }
        // The blocks of a message take precedence over its plain text (OMS 6.2).
        let repeats = blocks && name == "content";
        found.field_index = rank;
        found.weight = if repeats { REPEATED_WEIGHT } else { row.weight };
        found.is_utterance = row.is_utterance && !repeats;
        match row.extraction {
            TextExtraction::Leaves => leaves(&value, &mut |text| sink(FieldText { text, ..found })),
            TextExtraction::Reasons => leaves(&value, &mut |text| {
                if !is_address(text) {
                    sink(FieldText { text, ..found });
                }
            }),
            TextExtraction::Blocks => read_blocks(&value, found, settings, sink),
            TextExtraction::Entries(names) => {
                entries_of(&value, names, &mut |text| sink(FieldText { text, ..found }));
            }
        }
    }
}

/// The text of a grain for an embedder: titles first, cut at a character boundary within `most` bytes. Empty
/// for a grain without text.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # let time = EpochMs::new(1_768_471_200_000);
/// # let grain = EventBuilder::new(time, "Alice plans her travels").build()?;
/// # let blob = grain.encode(Encoding::Cbor)?;
/// # let grain = GrainRef::new(blob.bytes())?;
/// use grainstore_index::text::{Language, Settings, embedding_text};
///
/// // `grain` is an event: "Alice plans her travels".
/// let settings = Settings::new(Language::English);
/// assert_eq!(embedding_text(&grain, &settings, 1_000), "Alice plans her travels");
/// assert_eq!(embedding_text(&grain, &settings, 5), "Alice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn embedding_text(grain: &GrainRef<'_>, settings: &Settings, most: usize) -> String {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for_each_text(grain, settings, &mut |text| {
        if text.weight >= PLAIN_WEIGHT && !text.text.trim().is_empty() {
            found.push((text.field_index, text.text.trim()));
        }
    });
    found.sort_by_key(|(rank, _)| *rank);
    let mut said = found.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
    said.truncate(said.floor_char_boundary(most));
    said
}

/// Returns `true` if the blocks of a message have any text.
fn has_block_text(blocks: &ValueRef<'_>) -> bool {
    let said = |block: ValueRef<'_>| block.as_map()?.get("text")?.as_str().map(str::len);
    blocks.as_array().is_some_and(|blocks| blocks.iter().any(|block| said(block) > Some(0)))
}

fn read_blocks<'a>(
    blocks: &ValueRef<'a>,
    found: FieldText<'a>,
    settings: &Settings,
    sink: &mut dyn FnMut(FieldText<'a>),
) {
    let Some(blocks) = blocks.as_array() else { return };
    for block in blocks.iter().filter_map(|block| block.as_map()) {
        for (key, value) in block.iter() {
            // The `source` of a picture, and ids, are not text.
            let weight = match key {
                "text" => found.weight,
                "name" | "title" | "caption" | "alt" | "alt_text" => ASIDE_WEIGHT,
                "input" | "content" => BULK_WEIGHT,
                "thinking" if settings.thinking => BULK_WEIGHT,
                _ => continue,
            };
            let said = found.is_utterance && key == "text";
            let text = FieldText { weight, is_utterance: said, ..found };
            match key {
                // The output of a tool is a text or a list of blocks.
                "content" => {
                    entries_or_text(&value, &mut |found| sink(FieldText { text: found, ..text }));
                }
                _ => leaves(&value, &mut |found| sink(FieldText { text: found, ..text })),
            }
        }
    }
}

fn entries_or_text<'a>(value: &ValueRef<'a>, sink: &mut dyn FnMut(&'a str)) {
    match value {
        ValueRef::Str(_) => leaves(value, sink),
        _ => entries_of(value, CAPTIONS, sink),
    }
}

/// The texts under some names, in maps at any depth.
fn entries_of<'a>(value: &ValueRef<'a>, names: &[&str], sink: &mut dyn FnMut(&'a str)) {
    walk(value, Some(names), DeviceProfile::EXTENDED.max_depth, sink);
}

/// All texts in a value.
fn leaves<'a>(value: &ValueRef<'a>, sink: &mut dyn FnMut(&'a str)) {
    walk(value, None, DeviceProfile::EXTENDED.max_depth, sink);
}

/// The texts in a value, all or only those under some names, down to `depth` levels: the codecs accept no
/// deeper grain.
fn walk<'a>(
    value: &ValueRef<'a>,
    names: Option<&[&str]>,
    depth: usize,
    sink: &mut dyn FnMut(&'a str),
) {
    let Some(below) = depth.checked_sub(1) else { return };
    match value {
        ValueRef::Str(text) if names.is_none() => sink(text),
        ValueRef::Array(items) => items.iter().for_each(|item| walk(&item, names, below, sink)),
        ValueRef::Map(map) => map.iter().for_each(|(name, item)| {
            let inside = names.filter(|names| !names.contains(&name));
            walk(&item, inside, below, sink);
        }),
        _ => {}
    }
}

/// Returns `true` if a text is the address of a grain, with or without `sha256:`.
fn is_address(text: &str) -> bool {
    let hash = ContentAddress::digits(text);
    hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
