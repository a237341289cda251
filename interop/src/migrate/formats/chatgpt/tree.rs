//! A conversation of ChatGPT as a tree: each node names its parent, and most have a message.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{content, rest_of_message};
use crate::error::Result;
use crate::migrate::record::{Body, Record, Sink, Who, text};
use crate::migrate::time::{Dated, Unit, instant};

/// A conversation.
pub(super) struct Tree<'t> {
    pub(super) nodes: &'t Map<String, Value>,
    pub(super) place: &'t str,
    pub(super) who: Who,
    /// When the conversation began: the date of messages without one.
    pub(super) created: Dated,
}

/// A node that waits to be read, with the message that it answers.
type Waiting<'t> = (&'t str, Option<String>);

impl<'t> Tree<'t> {
    /// Reads the messages: each after the one that it answers.
    pub(super) fn read(&self, sink: &mut dyn Sink) -> Result<()> {
        let (roots, children) = self.edges(sink);
        let mut waiting: Vec<Waiting<'_>> =
            roots.into_iter().rev().map(|root| (root, None)).collect();
        let mut read = HashSet::new();
        while let Some((id, parent)) = waiting.pop() {
            if !read.insert(id) {
                continue;
            }
            // A node that says nothing passes on what it answers.
            let message = self.node(id, parent.clone(), sink)?.or(parent);
            for child in children.get(id).into_iter().flatten().rev() {
                waiting.push((child, message.clone()));
            }
        }
        for id in self.nodes.keys().filter(|id| !read.contains(id.as_str())) {
            sink.misshapen(&self.at(id), "its parents run in a circle")?;
        }
        Ok(())
    }

    /// The nodes without a parent, and the children of each node, in the order in which they were written.
    fn edges(&self, sink: &mut dyn Sink) -> (Vec<&'t str>, BTreeMap<&'t str, Vec<&'t str>>) {
        let (mut roots, mut children) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        for (id, node) in self.nodes {
            match node.get("parent").and_then(Value::as_str) {
                Some(parent) if self.nodes.contains_key(parent) => {
                    children.entry(parent).or_default().push(id.as_str());
                }
                Some(parent) => {
                    sink.note(format!("{}: its parent {parent} is nowhere", self.at(id)));
                    roots.push(id.as_str());
                }
                None => roots.push(id.as_str()),
            }
        }
        let written = |id: &&str| {
            let message = self.nodes.get(*id).and_then(|node| node.get("message"));
            let at =
                message.and_then(|message| instant(message.get("create_time")?, Unit::Seconds));
            (at, (*id).to_owned())
        };
        for siblings in children.values_mut() {
            siblings.sort_by_key(written);
        }
        (roots, children)
    }

    /// Reads a node, and returns the id of its message if it has one that says something.
    fn node(
        &self,
        id: &str,
        parent: Option<String>,
        sink: &mut dyn Sink,
    ) -> Result<Option<String>> {
        let node = self.nodes.get(id).and_then(|node| node.get("message"));
        let Some(message) = node.and_then(Value::as_object) else { return Ok(None) };
        let place = self.at(id);
        let metadata = message.get("metadata").and_then(Value::as_object);
        let hidden = metadata.and_then(|data| data.get("is_visually_hidden_from_conversation"));
        if hidden.and_then(Value::as_bool) == Some(true) {
            sink.skip(&place, "the message is hidden in its conversation")?;
            return Ok(None);
        }
        let Some(said) = content::text_of(message.get("content")) else {
            sink.skip(&place, "the message has no text")?;
            return Ok(None);
        };
        let author = message.get("author").and_then(Value::as_object);
        let mut rest = rest_of_message(message);
        if let Some(other) = content::other_parts(message.get("content")) {
            rest.insert("content".to_owned(), other);
        }
        if let Some(name) = author.and_then(|author| text(author, "name")) {
            rest.insert("author".to_owned(), Value::from(name));
        }
        let role = author.and_then(|author| text(author, "role")).map(str::to_owned);
        let model = metadata.and_then(|data| text(data, "model_slug")).map(str::to_owned);
        let created = Dated::of(message.get("create_time"), Unit::Seconds);
        let created = created.or(|| self.created.clone());
        let record = Record {
            who: Who { role, ..self.who.clone() },
            updated: message.get("update_time").and_then(|at| instant(at, Unit::Seconds)),
            rest,
            ..Record::new(place, "message", Body::Message { text: said, parent, model }, created)
        };
        let id = format!("message {}", text(message, "id").unwrap_or(id));
        sink.record(id.clone(), record)?;
        Ok(Some(id))
    }

    fn at(&self, id: &str) -> String {
        format!("{}: node {id}", self.place)
    }
}
