//! HTTP: whatever a request is, it gets an answer that is no failure of the server; and whatever the file of tokens has,
//! reading it is no panic.
#![no_main]

use std::sync::OnceLock;

use grainstore_serve::fuzzing::{Served, tokens};
use libfuzzer_sys::fuzz_target;

/// The server of all runs.
fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("fuzz-http-{}", std::process::id()));
        Served::new(&directory).expect("a server")
    })
}

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((0, file)) => tokens(file, "gst_00000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        Some((_, request)) => {
            let status = served().ask(request);
            assert_ne!(status, Some(500), "{}", String::from_utf8_lossy(request));
        }
        None => {}
    }
});
