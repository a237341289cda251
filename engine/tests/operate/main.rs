//! Operating a store: maintenance, moving, formats of before; the documentation and the layout of the code.

mod arrows;
mod dependencies;
mod docs;
mod fixtures;
mod maintain;
mod portable;
mod read_only;
