//! Tells the compiler that `--cfg shuttle` is a word of this crate (src/sync.rs), so that a mistyped
//! one is found.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
    println!("cargo::rerun-if-changed=build.rs");
}
