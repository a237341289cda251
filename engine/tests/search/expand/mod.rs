//! What is linked to the best answers: which grains, with which scores, page by page, and how much of it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test stops at a surprise"
)]

mod bounds;
mod model;
mod pages;
mod ways;
mod world;

use crate::random;
use crate::search::kit;
