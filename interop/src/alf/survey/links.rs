//! What the parts of an archive point at, and what of it is not there.

use super::{Survey, is_whole};
use crate::alf::bundle::Bundle;
use crate::alf::issue::Place;
use crate::alf::names::ATTACHMENTS;
use crate::alf::record::uuid_number;
use crate::json::Value;

/// A link to a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    to: u128,
    /// The partition it is in, `None` for an attachment.
    partition: Option<u32>,
    /// The line, or the number of the attachment.
    number: u64,
    member: &'static str,
}

impl Link {
    pub(super) fn of_line(
        to: &Value,
        (partition, line): (usize, u64),
        member: &'static str,
    ) -> Option<Self> {
        let partition = u32::try_from(partition).ok();
        Some(Self { to: uuid_number(to.as_str()?)?, partition, number: line, member })
    }

    pub(super) fn of_attachment(to: &Value, number: usize) -> Option<Self> {
        let to = uuid_number(to.as_str()?)?;
        Some(Self { to, partition: None, number: number as u64, member: "referenced_by" })
    }
}

impl Survey {
    /// Warns of links to records that are not in the archive.
    pub(super) fn check_links(&mut self, bundle: &Bundle) {
        let links = std::mem::take(&mut self.links);
        if !is_whole(bundle.kind) {
            return;
        }
        for link in links.into_iter().filter(|link| !self.has(link.to)).collect::<Vec<_>>() {
            let message = "it points at a record that is not in the archive";
            let file = link.partition.and_then(|place| bundle.partitions.get(place as usize));
            match file {
                Some(partition) => {
                    let entry = Place::entry(&partition.file);
                    self.warn(&entry.line(link.number).member(link.member), message);
                }
                None => {
                    let entry = Place::entry(bundle.layer_entry(ATTACHMENTS).unwrap_or_default());
                    let number = usize::try_from(link.number).unwrap_or_default();
                    self.warn(&entry.item(number).member(link.member), message);
                }
            }
        }
    }
}
