//! Writing: what sessions may write and see, signatures, reviews, imports.

mod access;
mod import;
mod regressions;
mod reviews;
mod sensitivity;
mod sessions;
mod signatures;
mod unique;
