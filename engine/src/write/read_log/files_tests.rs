use std::sync::Arc;

use super::*;
use crate::state::session_options::SessionOptions;
use crate::write::read_log::verify::{ReadLogCheck, verify};

const STORE: [u8; 16] = [1; 16];

fn chain() -> AuditHashChain {
    AuditHashChain::genesis(&STORE, [2; 32])
}

fn note(at: u8) -> ReadRecord {
    ReadRecord {
        query_hash: [at; 32],
        statement: None,
        reader: Arc::new(SessionOptions::default()),
        token_id: None,
        time: EpochMs::new(5),
        duration_ms: 0,
        results: Some(1),
        code: None,
        stream: None,
    }
}

/// Files of three groups each, of which four are kept.
fn files(dir: &Path) -> ReadLogFiles {
    let group = group::as_u64(group::encode(&[note(0)], 0, &chain()).len() + 36);
    let file = group::as_u64(HEADER_BYTES) + 2 * group + 1;
    let bounds = SizeLimits { file_bytes: file, total_bytes: 3 * (file + group) + file };
    ReadLogFiles::new(dir.join("reads"), STORE, chain(), bounds)
}

fn problems(files: &ReadLogFiles, notes: &[ReadLogSummary]) -> (ReadLogCheck, Vec<String>) {
    let mut found = Vec::new();
    let mut tell = |_, detail| found.push(detail);
    let examined = verify(&files.dir, (STORE, &chain()), notes, &mut tell).unwrap();
    (examined, found)
}

#[test]
fn full_files_make_room_once_the_audit_log_was_told() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut files = files(dir.path());
    let mut notes = Vec::new();
    for at in 0..30 {
        if let Some(told) = files.append(&[note(at)], 0, false).unwrap() {
            assert_eq!(told.entries, u64::from(at), "told when the next file is begun");
            files.settle(EpochMs::new(9)).unwrap();
            // Nothing has gone before the audit log says so.
            assert_eq!(problems(&files, &notes).1, Vec::<String>::new());
            notes.push(told);
            files.trim().unwrap();
            assert_eq!(problems(&files, &notes).1, Vec::<String>::new());
        }
    }
    assert_eq!(segment::file_numbers(&files.dir).unwrap(), [7, 8, 9, 10]);
    assert_eq!(notes.last().unwrap().first, 18);
    assert_eq!(problems(&files, &notes).0.entries, 12);
    // An older file that goes is missed, and so is one in between.
    let oldest = segment::path_of(&files.dir, 7);
    let bytes = fs::read(&oldest).unwrap();
    fs::remove_file(&oldest).unwrap();
    assert_eq!(problems(&files, &notes).1, ["entries 18 to 20 before it are missing"]);
    fs::write(&oldest, bytes).unwrap();
    fs::remove_file(segment::path_of(&files.dir, 8)).unwrap();
    assert!(problems(&files, &notes).1[0].contains("are missing"));
}

#[test]
fn all_are_kept_where_the_preset_says_so_and_lost_ones_are_counted() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut files = files(dir.path());
    for at in 0..30 {
        files.append(&[note(at)], u64::from(at == 3) * 40, true).unwrap();
        files.trim().unwrap();
    }
    assert_eq!(segment::file_numbers(&files.dir).unwrap().len(), 10);
    let (examined, found) = problems(&files, &[]);
    assert_eq!((examined.entries, examined.lost, found.len()), (30, 40, 0));
}

#[test]
fn the_signed_end_is_the_same_for_the_same_log_and_no_other_store_takes_it() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut files = files(dir.path());
    files.append(&[note(1)], 0, false).unwrap();
    files.settle(EpochMs::new(9)).unwrap();
    let bytes = fs::read(head::path_of(&files.dir)).unwrap();
    let end = files.tail.as_ref().unwrap().end;
    assert_eq!(
        bytes,
        head::encode(&STORE, &end, EpochMs::new(9), &chain().read_log_key()).unwrap()
    );
    assert_eq!(bytes[..9], [1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(bytes[9..41], end.hash);
    assert_eq!(bytes[41..49], [0, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(head::read(&files.dir, &STORE, &chain()).unwrap(), Some(end));
    let other = AuditHashChain::genesis(&STORE, [3; 32]);
    assert!(head::read(&files.dir, &STORE, &other).is_err(), "another key");
    assert!(head::read(&files.dir, &[2; 16], &chain()).is_err(), "another store");
}

#[test]
fn damage_before_the_signed_end_is_left_as_evidence_and_the_log_goes_on_behind_it() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut first = files(dir.path());
    first.append(&[note(1)], 0, false).unwrap();
    first.append(&[note(2)], 0, false).unwrap();
    first.settle(EpochMs::new(9)).unwrap();
    let log = segment::path_of(&first.dir, 1);
    let mut bytes = fs::read(&log).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let mut again = files(dir.path());
    again.append(&[note(3)], 0, false).unwrap();
    again.settle(EpochMs::new(10)).unwrap();
    assert_eq!(fs::read(&log).unwrap(), bytes);
    assert_eq!(segment::file_numbers(&again.dir).unwrap(), [1, 2]);
    assert_eq!(segment::read_header(&again.dir, 2, &STORE).unwrap().at.count, 2);
    assert!(problems(&again, &[]).1.iter().any(|detail| detail.contains("damaged behind")));
}

#[test]
fn a_file_that_was_cut_short_in_its_header_is_no_damage_unless_something_was_signed() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut files = files(dir.path());
    fs::create_dir(&files.dir).unwrap();
    let first = segment::path_of(&files.dir, 1);
    for length in [0, HEADER_BYTES - 1] {
        fs::write(&first, vec![0; length]).unwrap();
        assert_eq!(problems(&files, &[]).1, Vec::<String>::new());
    }
    files.append(&[note(0)], 0, false).unwrap();
    files.settle(EpochMs::new(9)).unwrap();
    fs::write(segment::path_of(&files.dir, 2), [0; 9]).unwrap();
    let (examined, found) = problems(&files, &[]);
    assert_eq!((examined.entries, found), (1, Vec::new()));
    fs::remove_file(segment::path_of(&files.dir, 2)).unwrap();
    fs::write(&first, [0; 9]).unwrap();
    assert_eq!(problems(&files, &[]).1, ["it is missing; it had 1 entries"]);
}

#[test]
fn the_head_is_signed_before_there_is_a_file_so_that_a_crash_leaves_none_without_it() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut files = files(dir.path());
    files.append(&[note(1)], 0, false).unwrap();
    let signed = head::read(&files.dir, &STORE, &chain()).unwrap();
    assert_eq!(signed, Some(segment::genesis(&STORE)), "no entry is signed yet");
    // It was killed before it could sign the first entry: the log goes on behind that.
    let mut again = self::files(dir.path());
    again.append(&[note(2)], 0, false).unwrap();
    again.settle(EpochMs::new(9)).unwrap();
    assert_eq!(segment::file_numbers(&again.dir).unwrap(), [1]);
    assert_eq!((problems(&again, &[]).0.entries, problems(&again, &[]).1.len()), (2, 0));
}

#[test]
fn where_the_head_is_missing_or_unreadable_a_further_file_tells_of_it_for_good() {
    for left in [None, Some(&b"no head"[..])] {
        let dir = tempfile::TempDir::new().unwrap();
        let mut first = files(dir.path());
        first.append(&[note(1)], 0, false).unwrap();
        first.settle(EpochMs::new(9)).unwrap();
        let noted = fs::read(segment::path_of(&first.dir, 1)).unwrap();
        first.append(&[note(2)], 0, false).unwrap();
        first.settle(EpochMs::new(9)).unwrap();
        // Cut back, in a way that leaves whole groups.
        fs::write(segment::path_of(&first.dir, 1), &noted).unwrap();
        match left {
            None => fs::remove_file(head::path_of(&first.dir)).unwrap(),
            Some(bytes) => fs::write(head::path_of(&first.dir), bytes).unwrap(),
        }
        assert_eq!(problems(&first, &[]).1.len(), 1);
        let mut again = files(dir.path());
        for at in 3..9 {
            again.append(&[note(at)], 0, true).unwrap();
        }
        again.settle(EpochMs::new(10)).unwrap();
        let found = problems(&again, &[]).1;
        assert_eq!(found, ["the log breaks off behind entry 1, and 00000002.log goes on with 1"]);
        assert_eq!(problems(&again, &[]).0.entries, 7);
        assert_eq!(fs::read(segment::path_of(&again.dir, 1)).unwrap(), noted);
    }
}
