//! The built `grain` as others meet it: its commands, its rpc, and every vector through both.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod codec;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod dids;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod embedders;
#[cfg(test)]
mod erase;
#[cfg(test)]
#[cfg(unix)]
mod file_size;
#[cfg(test)]
mod filters;
#[cfg(test)]
mod frames;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(test)]
mod graph;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod locomo;
mod maintain;
#[cfg(test)]
mod marks;
#[cfg(test)]
mod mcp;
mod neighbours;
#[cfg(test)]
mod neighbours_saga;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod piped;
#[cfg(test)]
mod portable;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod processes;
#[cfg(test)]
#[cfg(unix)]
mod prompt;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod prove;
#[cfg(test)]
mod put;
#[cfg(test)]
mod readable;
#[cfg(test)]
mod reviews;
#[cfg(test)]
mod rpc;
#[cfg(test)]
mod rules;
mod search;
#[cfg(test)]
#[cfg(feature = "serve")]
mod served;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "serve"))]
mod served_kills;
#[cfg(test)]
mod settings;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod shared;
#[cfg(test)]
#[cfg(unix)]
mod shown;
#[cfg(test)]
mod signed;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod users;
#[cfg(test)]
mod views;
