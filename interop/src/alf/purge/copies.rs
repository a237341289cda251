//! What the records of a store that go said, and where else in the store it is.

use std::collections::{BTreeMap, BTreeSet};

use grainstore::{ContentAddress, ErrorKind};

use super::report::PurgeReport;
use super::sought::Sought;
use super::store::StorePurge;
use super::targets::Targets;
use super::walk::{Sort, each_grain, record_in, record_of_stored, sort_of};
use crate::alf::export::{documents_of, is_same_person};
use crate::alf::import::drop_principals;
use crate::alf::names::PRINCIPALS;
use crate::error::Result;
use crate::json;

impl StorePurge<'_, '_> {
    /// What the records said, in all their versions.
    pub(super) fn sought(&self, targets: &Targets, report: &mut PurgeReport) -> Result<Sought> {
        let mut sought = Sought::default();
        for (id, target) in &targets.records {
            if target.is_known {
                sought.add_id(id);
            }
            if let Ok(Some(row)) = self.agent.row(id)
                && let Some(view) = &row.native
            {
                sought.add(view);
            }
        }
        let mut unread = BTreeMap::new();
        let whole = targets.records.iter().map(|(id, target)| (id, &target.grains));
        for (id, grains) in whole.chain(&targets.former) {
            for grain in grains {
                match record_in(self.agent, grain)? {
                    Some(record) => sought.add(&record),
                    None => drop(unread.insert(*grain, id.clone())),
                }
            }
        }
        if !unread.is_empty() {
            self.read_for_the_person(targets, &mut unread, &mut sought)?;
        }
        report.records_unread.extend(unread.into_values());
        Ok(sought)
    }

    /// What a consent hides is read for the person whose it is, if the purge is about one.
    pub(super) fn read_for_the_person(
        &self,
        targets: &Targets,
        unread: &mut BTreeMap<ContentAddress, String>,
        sought: &mut Sought,
    ) -> Result<()> {
        for person in &targets.asked_for {
            let theirs = match self.agent.session.subject_grains(person) {
                // There are too many to hold: they are told of as unread.
                Err(error) if error.kind() == ErrorKind::Limit => continue,
                theirs => theirs?,
            };
            for stored in &theirs {
                if unread.remove(&stored.address).is_some() {
                    sought.add(&record_of_stored(self.agent, stored)?);
                }
            }
        }
        Ok(())
    }

    /// Finds other records and documents that have the content of one that went.
    pub(super) fn find_copies(
        &self,
        sought: &Sought,
        targets: &Targets,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let (mut records, mut documents) = (BTreeSet::new(), BTreeSet::new());
        let mut whole = documents_of(self.agent)?;
        for (layer, document) in &mut whole {
            if *layer == PRINCIPALS {
                drop_principals(document, |id| {
                    targets.asked_for.iter().any(|asked| is_same_person(id, asked))
                });
            }
        }
        sought.each_finder(|finder| {
            for (layer, document) in &whole {
                if finder.is_in_text(&json::line(document)) {
                    documents.insert(layer.name.to_owned());
                }
            }
            each_grain(self.agent.session, &targets.users, self.monitor, |address, grain| {
                let (Sort::Record(id) | Sort::Native(id) | Sort::Copy(id)) =
                    sort_of(self.agent, address, grain)?
                else {
                    return Ok(());
                };
                if targets.records.contains_key(&id) || records.contains(&id) {
                    return Ok(());
                }
                let record = record_in(self.agent, address)?;
                let content = record.as_ref().and_then(|record| record.get("content")?.as_str());
                if content.is_some_and(|content| finder.is_in_text(content)) {
                    records.insert(id);
                }
                Ok(())
            })
        })?;
        report.records_with_copies.extend(records);
        report.documents_with_copies.extend(documents);
        Ok(())
    }
}
