//! A store in a folder of its own, exports beside it, and questions to the store.

use std::path::{Path, PathBuf};

use grainstore::cal::{Predicate, Query, Visibility};
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::migrate::{self, Format, MigrateOptions, MigrateReport};

/// A store, and room for exports.
pub(crate) struct Kit {
    dir: tempfile::TempDir,
    pub(crate) session: Session,
    pub(crate) options: MigrateOptions,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(OpenOptions::new())
    }

    /// A store that is opened with more options.
    pub(crate) fn with(options: OpenOptions) -> Self {
        Self::within(tempfile::tempdir().unwrap(), options)
    }

    /// A store in a folder that is there already.
    pub(crate) fn within(dir: tempfile::TempDir, options: OpenOptions) -> Self {
        let options = options.create(true);
        let store = Store::open(dir.path().join("store"), &options).unwrap();
        let session = store.session(SessionOptions::default());
        Self { dir, session, options: MigrateOptions::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a ZIP archive of these files.
    pub(crate) fn zip(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let path = self.path(name);
        let mut writer = grainstore_interop::archive::ArchiveWriter::create(&path).unwrap();
        for (name, text) in files {
            writer.add(name, text.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    pub(crate) fn try_run(
        &self,
        format: Format,
        path: &Path,
    ) -> grainstore_interop::Result<MigrateReport> {
        migrate::run(&self.session, format, path, &self.options, &Monitor::default())
    }

    pub(crate) fn run(&self, format: Format, path: &Path) -> MigrateReport {
        self.try_run(format, path).unwrap()
    }

    /// Runs without writing, then twice. The first two tell the same; the last one adds nothing. Returns the report.
    pub(crate) fn run_thrice(&mut self, format: Format, path: &Path) -> MigrateReport {
        let before = self.grains();
        self.options.dry_run = true;
        let dry = self.run(format, path);
        assert_eq!(self.grains(), before, "a dry run writes nothing");
        self.options.dry_run = false;
        let first = self.run(format, path);
        assert_eq!(MigrateReport::told(&dry), MigrateReport::told(&first));
        let after = self.grains();
        let again = self.run(format, path);
        assert_eq!((again.added, again.changed, again.ended), (0, 0, 0), "{again:?}");
        assert_eq!(self.grains(), after);
        assert_eq!((again.became, again.left_out), (Vec::new(), first.left_out));
        first
    }

    pub(crate) fn grains(&self) -> u64 {
        self.session.store().stats().unwrap().grains
    }

    fn query(&self, query: &Query) -> Vec<Grain> {
        let page = self.session.query(query, &PageOptions::first(1000)).unwrap();
        page.results.into_iter().map(|found| found.grain).collect()
    }

    /// How many grains with this object hold at a time.
    pub(crate) fn valid_at(&self, object: &str, at: i64) -> usize {
        let query = Query::default().when(Predicate::text_is("object", object).unwrap());
        self.query(&query.valid_at(grainstore::EpochMs::new(at))).len()
    }

    /// The current grains with this text in a field.
    pub(crate) fn by(&self, field: &'static str, text: &str) -> Vec<Grain> {
        self.query(&Query::default().when(Predicate::text_is(field, text).unwrap()))
    }

    /// The current grains that a search by words finds.
    pub(crate) fn search(&self, words: &str) -> Vec<Grain> {
        self.query(&Query::default().searching(words))
    }

    /// All grains with this text in a field, those that have ended included.
    pub(crate) fn all_by(&self, field: &'static str, text: &str) -> Vec<Grain> {
        let query = Query::default().when(Predicate::text_is(field, text).unwrap());
        self.query(&query.seeing(Visibility::EVERYTHING))
    }

    /// The objects of what is said of a subject in a relation, sorted.
    pub(crate) fn objects(&self, subject: &str, relation: &str) -> Vec<String> {
        let found = self.by("subject", subject).into_iter();
        let found = found.filter(|grain| grain.text("relation") == Some(relation));
        let mut objects: Vec<_> =
            found.filter_map(|grain| grain.text("object").map(str::to_owned)).collect();
        objects.sort();
        objects
    }
}

/// What a report tells, whether or not anything was written.
pub(crate) trait Told {
    fn told(report: &Self) -> serde_json::Value;
    fn kinds(&self) -> Vec<(String, u64)>;
    fn reasons(&self) -> Vec<&str>;
}

impl Told for MigrateReport {
    fn told(report: &Self) -> serde_json::Value {
        let mut told = serde_json::to_value(report).unwrap();
        told.as_object_mut().unwrap().remove("dry_run");
        told
    }

    fn kinds(&self) -> Vec<(String, u64)> {
        let became = self.became.iter();
        became.map(|one| (format!("{} {}", one.kind, one.grain_type), one.records)).collect()
    }

    fn reasons(&self) -> Vec<&str> {
        self.left_out_first.iter().map(|left| left.why.as_str()).collect()
    }
}

/// A field of the context of a grain.
pub(crate) fn context<'g>(grain: &'g Grain, name: &str) -> Option<&'g str> {
    grain.map("context")?.get(name)?.as_str()
}

/// Milliseconds of a date.
pub(crate) fn ms(date: &str) -> i64 {
    grainstore::format::parse_datetime(date).unwrap().get()
}
