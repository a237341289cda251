//! Runs the rows of containers against `grainstore-format` and tells all that fail at once.

use std::collections::BTreeSet;

use grainstore_format::container::{
    Compression, Container, ContainerPlan, ContainerWriter, ManifestEntry, PlannedEntry,
};
use grainstore_format::{
    ContentAddress, DecodeOptions, EpochMs, Error, GrainState, VerificationStatus,
};
use grainstore_vectors::{ContainerRow, HeldRow, StateRow, container_rows};

#[test]
fn containers_are_read_written_and_refused_as_their_rows_say() {
    let rows = container_rows().unwrap();
    let names: BTreeSet<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), rows.len(), "a name is used twice");
    let failures: Vec<_> =
        rows.iter().filter_map(|row| Some((&row.name, check(row).err()?))).collect();
    assert!(failures.is_empty(), "{} of {} rows fail: {failures:#?}", failures.len(), rows.len());
    let refused = rows.iter().filter(|row| row.code.is_some()).count();
    let exact = rows.iter().filter_map(|row| row.held.as_ref()).filter(|held| held.exact).count();
    assert!(rows.len() >= 72 && refused >= 48 && exact >= 10, "rows are missing");
}

fn check(row: &ContainerRow) -> Result<(), String> {
    match (&row.held, &row.code) {
        (Some(held), None) => check_held(&row.container, held),
        (None, Some(code)) => match read(&row.container) {
            Ok(_) => Err(format!("accepted, expected {code}")),
            Err(error) if error.code() == code => Ok(()),
            Err(error) => Err(format!("{}, expected {code}: {error}", error.code())),
        },
        _ => Err("a row has either entries or a code".to_owned()),
    }
}

fn check_held(bytes: &[u8], held: &HeldRow) -> Result<(), String> {
    let (compression, entries, manifest) = read(bytes).map_err(|error| error.to_string())?;
    let expected = manifest_of(held);
    if compression.name() != held.compression || entries != held.entries {
        return Err("the grains are others".to_owned());
    }
    let known: Vec<_> = manifest.into_iter().filter(|(_, carried)| !carried.is_default()).collect();
    if known != expected {
        return Err(format!("manifest: {known:?}, expected {expected:?}"));
    }
    let written = write(held, compression).map_err(|error| error.to_string())?;
    match held.exact && written != bytes {
        true => Err(format!("written as {}", data_encoding::HEXLOWER.encode(&written))),
        false => Ok(()),
    }
}

type Read = (Compression, Vec<Vec<u8>>, Vec<(ContentAddress, ManifestEntry)>);

fn read(bytes: &[u8]) -> Result<Read, Error> {
    let container = Container::open(bytes, &DecodeOptions::default())?;
    let entries = container.entries()?.map(|entry| Ok(entry?.bytes().to_vec()));
    let entries = entries.collect::<Result<_, Error>>()?;
    let manifest = container.manifest().into_iter().flatten().collect::<Result<_, Error>>()?;
    Ok((container.compression(), entries, manifest))
}

fn write(held: &HeldRow, compression: Compression) -> Result<Vec<u8>, Error> {
    let manifest = manifest_of(held);
    let count = u32::try_from(manifest.len()).unwrap_or(u32::MAX);
    let mut plan = ContainerPlan::new(compression).with_manifest(count);
    for entry in &held.entries {
        let read = grainstore_format::container::ContainerEntry::read(
            entry.clone(),
            &DecodeOptions::default(),
        )?;
        plan.add(&PlannedEntry::of(entry, read.created_at())?)?;
    }
    let mut writer = ContainerWriter::new(Vec::new(), plan)?;
    held.entries.iter().try_for_each(|entry| writer.push(entry))?;
    Ok(writer.finish(manifest.into_iter().map(Ok::<_, Error>))?.0)
}

fn manifest_of(held: &HeldRow) -> Vec<(ContentAddress, ManifestEntry)> {
    let address = |text: &String| text.parse::<ContentAddress>().ok();
    let carried = |row: &StateRow| ManifestEntry {
        hold_lifted: false,
        embedded: Vec::new(),
        state: GrainState {
            superseded_by: row.sb.as_ref().and_then(address),
            system_valid_to: row.svt.map(EpochMs::new),
            verification_status: row
                .vstatus
                .as_deref()
                .and_then(VerificationStatus::from_name)
                .unwrap_or_default(),
            contradicted: row.ct,
            needs_review: row.x_review,
            held: row.x_held,
        },
        access_count: row.ac,
        last_accessed_at: row.laa.map(EpochMs::new),
    };
    held.manifest.iter().filter_map(|(name, row)| Some((address(name)?, carried(row)))).collect()
}
