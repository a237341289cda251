//! Stores of earlier formats under the tests of those there are: with `GRAINSTORE_UPGRADED=1` (or 2) a store that a test
//! creates was created in that format, and is upgraded when it is opened.

use std::fs;
use std::path::Path;

/// Puts an empty store of the format that was asked for into a directory without one.
pub(crate) fn put_former_store(directory: &Path) {
    let Ok(format) = std::env::var("GRAINSTORE_UPGRADED") else { return };
    let truth = directory.join("grains.redb");
    if truth.exists() {
        return;
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let packed = fs::read(fixture.join(format!("empty-{format}/grains.redb.zst"))).unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::write(truth, zstd::bulk::decompress(&packed, 16 << 20).unwrap()).unwrap();
}
