//! ZIP archives: nothing of one is trusted before it is checked, and what is written is the same bytes each time.
//!
//! Knows no format that is kept in one.

mod name;
mod new_file;
mod reader;
mod writer;

pub use new_file::NewFile;
pub(crate) use new_file::{WholeFile, check_replaceable, sync_folder_of};
pub(crate) use reader::unread;
pub use reader::{Archive, Entry, EntryReader, Limits};
pub use writer::ArchiveWriter;
