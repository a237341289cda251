//! WITH contradiction_detection: the grains that contradict a grain.

use std::ops::ControlFlow;

use grainstore_format::{ContentAddress, Value};

use super::Executor;
use crate::bounds::Visibility;
use crate::error::Result;
use crate::limits;
use crate::memory::Hit;
use crate::predicate::Predicate;
use crate::query::Query;

/// Relation types of cross-links that contradict their target (OMS 14.3).
const CONTRADICTING_LINKS: [&str; 2] = ["contradicts", "refutes"];

impl Executor<'_> {
    /// Returns the grains linked to this one by `contradicts` or `refutes`, in either direction, and current
    /// ones with another object of the same subject and relation; at most twenty.
    pub(super) fn contradictions(&self, hit: &Hit) -> Result<Vec<ContentAddress>> {
        let mut found = Vec::new();
        for address in link_targets(hit) {
            if self.memory.exists(&address)? {
                add_unique(&mut found, address);
            }
        }
        let disputed = Visibility { contradicted: true, ..Visibility::default() };
        let links = Query::default()
            .seeing(disputed)
            .when(Predicate::related(&CONTRADICTING_LINKS, &[hit.address]));
        self.add_matches(&links, hit, None, &mut found)?;
        if let (Some(subject), Some(relation)) =
            (hit.grain.text("subject"), hit.grain.text("relation"))
        {
            let rivals = Query::default()
                .when(Predicate::own_text("subject", subject))
                .when(Predicate::own_text("relation", relation));
            self.add_matches(&rivals, hit, hit.grain.get("object"), &mut found)?;
        }
        Ok(found)
    }

    /// Adds the matches of a query, except the grain itself and grains with its object.
    fn add_matches(
        &self,
        query: &Query,
        hit: &Hit,
        object: Option<&Value>,
        found: &mut Vec<ContentAddress>,
    ) -> Result<()> {
        if found.len() >= limits::MAX_CONTRADICTIONS {
            return Ok(());
        }
        self.memory.recall(query, &self.cancel, &mut |candidate| {
            let same = object.is_some_and(|object| {
                candidate.grain.get("object").is_none_or(|other| match other.as_str() {
                    Some(text) => object.as_str() == Some(text),
                    None => other.to_value() == *object,
                })
            });
            if candidate.address != hit.address && !same {
                add_unique(found, candidate.address);
            }
            match found.len() < limits::MAX_CONTRADICTIONS {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(())
    }
}

fn add_unique(found: &mut Vec<ContentAddress>, address: ContentAddress) {
    if found.len() < limits::MAX_CONTRADICTIONS && !found.contains(&address) {
        found.push(address);
    }
}

/// Returns the targets of the contradicting links of a grain.
fn link_targets(hit: &Hit) -> impl Iterator<Item = ContentAddress> {
    let links = hit.grain.get("related_to").and_then(Value::as_array).unwrap_or(&[]);
    links.iter().filter_map(Value::as_map).filter_map(|link| {
        let kind = link.get("relation_type").and_then(Value::as_str)?;
        let hash = link.get("hash").and_then(Value::as_str)?;
        CONTRADICTING_LINKS.contains(&kind).then(|| hash.parse().ok())?
    })
}
