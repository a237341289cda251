//! One store in a process of its own, so that its memory is its own: an order in, records out.

use std::io::Write;
use std::process::Stdio;

use compare_facts::{Order, Record};

use super::stores::Store;
use crate::Result;

/// Has a process measure a store.
///
/// # Errors
/// Where the process fails: it has said why on its error output.
pub(super) fn measure(store: &Store, order: &Order) -> Result<Vec<Record>> {
    let mut child = store.command()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("a child without input")?;
    input.write_all(&serde_json::to_vec(order)?)?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("measuring {} failed: see above", order.peer).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
