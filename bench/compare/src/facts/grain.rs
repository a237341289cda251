//! A fact as a grain, and back. It knows the format and no store.

use compare_facts::{CONFIDENCE, Fact, NAMESPACE};
use grainstore::format::{BeliefBuilder, Encoding};
use grainstore::{ContentAddress, EpochMs, Grain};

use crate::Result;

/// The grain of a fact.
pub(super) fn of(fact: &Fact) -> Result<Grain> {
    let (time, object) = (EpochMs::new(fact.created_at), fact.object.as_str());
    let grain = BeliefBuilder::new(time, &fact.subject, &fact.relation, object, CONFIDENCE);
    Ok(grain.namespace(NAMESPACE).build()?)
}

/// The address it is found by.
pub(super) fn address(fact: &Fact) -> Result<ContentAddress> {
    Ok(of(fact)?.encode(Encoding::default())?.address())
}

/// The fields of a grain, as text of its own.
pub(super) fn fact(grain: &Grain) -> Result<Fact> {
    let text = |name: &str| {
        grain.text(name).map(str::to_owned).ok_or_else(|| format!("a grain without its {name}"))
    };
    Ok(Fact {
        created_at: grain.created_at().get(),
        subject: text("subject")?,
        relation: text("relation")?,
        object: text("object")?,
    })
}
