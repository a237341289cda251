//! Archives that lie: each is refused with a code and the name of the entry.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits, NewFile};
use grainstore_interop::{Error, Result};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};

/// An entry of an archive as somebody else writes it.
struct Made<'e> {
    name: &'e [u8],
    bytes: &'e [u8],
    mode: Option<u32>,
    encrypted: bool,
}

impl<'e> Made<'e> {
    fn of(name: &'e [u8]) -> Self {
        Self { name, bytes: b"tea", mode: None, encrypted: false }
    }
}

/// The bytes of an archive of these entries.
fn zip_of(entries: &[Made<'_>]) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    for made in entries {
        let mut file = zip
            .new_file(EntryPath::verbatim(made.name))
            .compression_method(CompressionMethod::DEFLATE)
            .encrypted(made.encrypted);
        if let Some(mode) = made.mode {
            file = file.unix_permissions(mode);
        }
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        writer.write_all(made.bytes).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap()
}

fn written(dir: &Path, bytes: &[u8]) -> PathBuf {
    let path = dir.join("a.zip");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn open(bytes: &[u8]) -> Result<Archive> {
    let dir = tempfile::tempdir().unwrap();
    Archive::open(written(dir.path(), bytes), Limits::default())
}

fn refused(bytes: &[u8]) -> Error {
    open(bytes).unwrap_err()
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let names: &[&[u8]] = &[
        b"../a",
        b"a/../../b",
        b"/etc/passwd",
        b"a\\b",
        b"C:/a",
        b"c:a",
        b"a//b",
        b"./a",
        b"a/.",
        b"a\0b",
        b"\xff",
        b"..",
        b"/",
        b"a/../b/",
    ];
    for name in names {
        let error = refused(&zip_of(&[Made::of(b"good"), Made::of(name)]));
        let told = String::from_utf8_lossy(name);
        assert_eq!(error.code(), "ERR_CORRUPT", "{told}");
        assert!(error.entry().unwrap().contains(told.as_ref()), "{told}: {error}");
    }
}

#[test]
fn a_name_that_is_there_twice_is_refused() {
    let error = refused(&zip_of(&[Made::of(b"a"), Made::of(b"b"), Made::of(b"a")]));
    assert_eq!(error.code(), "ERR_CORRUPT");
    assert!(error.to_string().ends_with("a: two entries have this name"), "{error}");
}

#[test]
fn links_and_encrypted_entries_are_refused() {
    let link = Made { mode: Some(0o120_777), ..Made::of(b"link") };
    assert!(refused(&zip_of(&[link])).to_string().contains("link: it is a link"));
    let encrypted = Made { encrypted: true, ..Made::of(b"secret") };
    assert!(refused(&zip_of(&[encrypted])).to_string().contains("secret: it is encrypted"));
}

#[test]
fn a_bomb_is_refused_before_it_is_inflated() {
    let zeros = vec![0; 8 << 20];
    let bomb = Made { bytes: &zeros, ..Made::of(b"bomb") };
    let error = refused(&zip_of(&[bomb]));
    assert_eq!(error.code(), "ERR_LIMIT");
    assert!(error.entry().unwrap().ends_with("bomb"));
}

#[test]
fn limits_count_all_entries_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), &zip_of(&[Made::of(b"a"), Made::of(b"b")]));
    let bytes = Limits { inflated_bytes: 5, ..Limits::default() };
    let error = Archive::open(&path, bytes).unwrap_err();
    assert_eq!((error.code(), error.entry().unwrap().ends_with(": b")), ("ERR_LIMIT", true));
    let entries = Limits { entries: 1, ..Limits::default() };
    assert_eq!(Archive::open(&path, entries).unwrap_err().code(), "ERR_LIMIT");
    let archive = Archive::open(&path, Limits::default()).unwrap();
    assert_eq!(archive.read("a", 2).unwrap_err().code(), "ERR_LIMIT");
}

/// Every byte of an archive, changed in turn: it is refused, or reads as it was.
#[test]
fn no_flipped_byte_changes_what_is_read() {
    let entries =
        [Made::of(b"a"), Made { bytes: b"something longer, longer, longer", ..Made::of(b"b/c") }];
    let bytes = zip_of(&entries);
    let dir = tempfile::tempdir().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        let path = written(dir.path(), &changed);
        let Ok(archive) = Archive::open(&path, Limits::default()) else { continue };
        for made in &entries {
            let name = std::str::from_utf8(made.name).unwrap();
            if let Ok(Some(read)) = archive.read(name, 1 << 20) {
                assert_eq!(read, made.bytes, "byte {at}");
            }
        }
    }
}

#[test]
fn an_archive_that_is_cut_is_refused() {
    let bytes = zip_of(&[Made::of(b"a"), Made::of(b"b")]);
    for end in 0..bytes.len() {
        assert!(open(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn an_entry_that_names_itself_otherwise_is_refused() {
    let mut bytes = zip_of(&[Made::of(b"good.txt")]);
    let own = bytes.windows(8).position(|window| window == b"good.txt").unwrap();
    bytes[own..own + 8].copy_from_slice(b"evil.txt");
    assert!(refused(&bytes).to_string().contains("good.txt: it has another name"));
}

#[test]
fn entries_that_share_bytes_are_refused() {
    // The second record of the directory is made to point at the bytes of the first.
    let mut bytes = zip_of(&[Made::of(b"a1"), Made::of(b"a2")]);
    let records: Vec<_> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == *b"PK\x01\x02").collect();
    bytes[records[1] + 42..records[1] + 46].copy_from_slice(&[0; 4]);
    let first = bytes.windows(2).position(|window| window == b"a1").unwrap();
    // Its name has to be that of the entry it points at, and another than the first of the directory.
    bytes[first..first + 2].copy_from_slice(b"a2");
    bytes[records[0] + 46..records[0] + 48].copy_from_slice(b"a2");
    bytes[records[1] + 46..records[1] + 48].copy_from_slice(b"a2");
    assert_eq!(refused(&bytes).code(), "ERR_CORRUPT");
}

#[test]
fn the_same_entries_give_the_same_bytes() {
    let write = || {
        let mut writer = ArchiveWriter::to(Vec::new());
        writer.add("a", &b"tea"[..]).unwrap();
        writer.add("b/c", &[b'x'; 100_000][..]).unwrap();
        writer.into_inner().unwrap()
    };
    assert_eq!(write(), write());
}

#[test]
fn an_archive_that_is_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ArchiveWriter::create(dir.path().join("a.zip")).unwrap();
    writer.add("a", &b"tea"[..]).unwrap();
    assert_eq!(writer.add("../a", &b"tea"[..]).unwrap_err().code(), "ERR_CORRUPT");
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_large_entry_is_read_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zip");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    let text = "some text that is packed, ".repeat(40_000);
    assert_eq!(writer.add("a", text.as_bytes()).unwrap(), text.len() as u64);
    writer.finish().unwrap();
    let archive = Archive::of(File::open(&path).unwrap(), Limits::default()).unwrap();
    let mut reader = archive.reader(archive.entry("a").unwrap()).unwrap();
    let mut first = [0; 9];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"some text");
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), text.len() - 9);
}

#[test]
fn what_is_written_is_never_packed_more_densely_than_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for size in [1_usize, 100, 2_047, 2_048, 5_000, 70_000, 1 << 20, 9 << 20] {
        for text in ["\0", "x y z "] {
            let path = dir.path().join("a.zip");
            let bytes = text.as_bytes().iter().copied().cycle().take(size).collect::<Vec<_>>();
            let mut writer = ArchiveWriter::create(&path).unwrap();
            // Many small entries are counted together.
            for at in 0..(3 << 20) / size.clamp(1 << 16, 3 << 20) {
                writer.add(&format!("{at}"), &bytes[..]).unwrap();
            }
            writer.finish().unwrap();
            let archive = Archive::open(&path, Limits::default()).unwrap();
            assert_eq!(archive.read("0", 1 << 30).unwrap().unwrap(), bytes, "{size}");
        }
    }
}

#[test]
fn a_name_without_a_directory_is_one_of_this_directory() {
    // No other test of this program asks for the current directory.
    let dir = tempfile::tempdir().unwrap();
    std::env::set_current_dir(dir.path()).unwrap();
    let mut writer = ArchiveWriter::create("a.zip").unwrap();
    writer.add("a", &b"tea"[..]).unwrap();
    writer.finish().unwrap();
    assert!(dir.path().join("a.zip").exists());
}

#[test]
fn only_a_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let refused = NewFile::create(&folder).unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains("directory")), ("ERR_CONFLICT", true));
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        let refused = NewFile::create(&pipe).unwrap_err();
        assert_eq!((refused.code(), refused.to_string().contains("pipe")), ("ERR_CONFLICT", true));
    }
    if Path::new("/dev/null").exists() {
        assert_eq!(NewFile::create("/dev/null").unwrap_err().code(), "ERR_CONFLICT");
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "old").unwrap();
    NewFile::create(&file).unwrap().finish().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn what_a_killed_writer_left_is_swept_and_what_is_written_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let names = || {
        let names = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut writing = NewFile::create(dir.path().join("a")).unwrap();
    writing.write_all(b"tea").unwrap();
    let unfinished = names();
    assert_eq!(unfinished.len(), 1);
    // The same bytes under such a name, which nobody writes.
    let left = unfinished[0].replace(".part", "x.part");
    std::fs::write(dir.path().join(&left), "secret").unwrap();
    std::fs::write(dir.path().join(".grain-notes"), "of somebody").unwrap();
    NewFile::create(dir.path().join("b")).unwrap().finish().unwrap();
    assert_eq!(
        names(),
        [unfinished[0].as_str(), ".grain-notes", "b"]
            .map(str::to_owned)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    writing.finish().unwrap();
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"tea");
}
