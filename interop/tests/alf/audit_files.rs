//! What is no file is no audit file of a purge: it is refused before anything goes.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use grainstore::EpochMs;
use grainstore_interop::alf::{self, PurgeScope};
use grainstore_interop::archive::Limits;
use grainstore_interop::{Monitor, Result};

use crate::kit::*;
use crate::purge::options;
use crate::vouched::running;

/// Long enough for what does not wait for anybody.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory and, where there are pipes, a pipe.
fn no_files(dir: &Path) -> Vec<PathBuf> {
    let (folder, pipe) = (dir.join("folder"), dir.join("pipe"));
    std::fs::create_dir(&folder).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    let pipe = made.is_ok_and(|status| status.success()).then_some(pipe);
    std::iter::once(folder).chain(pipe).collect()
}

/// Does something that must not wait for a reader that never comes.
fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(PATIENCE).unwrap()
}

fn assert_refused<T: std::fmt::Debug>(done: Result<T>, at: &Path) {
    let error = done.unwrap_err();
    assert_eq!(error.code(), "ERR_CONFLICT", "{at:?}: {error}");
    assert!(error.hint().contains("name of a file"), "{error:?}");
}

#[test]
fn a_purge_is_told_in_a_file_alone() {
    let world = World::new();
    world.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]));
    for at in no_files(world.dir.path()) {
        let session = world.session.part(grainstore::prelude::SessionOptions::default());
        let mut asked = options();
        asked.audit_file = Some(at.clone());
        let done = soon(move || {
            let scope = PurgeScope::Records(vec![id(1)]);
            alf::purge(&session, &scope, &asked, &Monitor::default())
        });
        assert_refused(done, &at);
        assert!(world.export().0.records.contains_key(&id(1)));
    }
}

#[test]
fn a_purge_of_a_file_is_told_in_a_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let records = vec![record(1, "2026-07-02T00:00:00Z"), record(2, "2026-07-02T00:00:00Z")];
    let path = running(records).write(dir.path(), "a.alf");
    let mut places: Vec<(PathBuf, PathBuf)> =
        no_files(dir.path()).into_iter().map(|at| (at.clone(), at)).collect();
    // What is kept of a purge that has begun lies beside the audit file.
    let beside = dir.path().join("audit.jsonl.begun");
    if let Some((pipe, _)) = places.get(1).cloned() {
        std::fs::rename(pipe, &beside).unwrap();
        places[1] = (dir.path().join("audit.jsonl"), beside.clone());
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("other")).status();
        assert!(made.unwrap().success());
        places.push((dir.path().join("other"), dir.path().join("other")));
    }
    for (audit_file, at) in places {
        let mut asked = options();
        asked.audit_file = Some(audit_file);
        let path_of = path.clone();
        let done = soon(move || {
            let (ids, now) = ([id(1)], EpochMs::new(NOW));
            let monitor = Monitor::default();
            let limits = Limits::default();
            alf::purge_archive(&path_of, &path_of, &ids, now, &asked, limits, &monitor)
        });
        assert_refused(done, &at);
        assert!(read(&path).records.contains_key(&id(1)));
    }
}
