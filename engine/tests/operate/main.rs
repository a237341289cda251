//! Operating a store: maintenance, moving, formats of before; the documentation and the layout of the code.

mod arrows;
mod dependencies;
mod docs;
mod fixtures;
#[path = "../kit/index_blocks.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod index_blocks;
mod limits;
mod maintain;
mod memory;
mod portable;
mod read_only;
