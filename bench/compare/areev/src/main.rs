//! areev at the work of the comparison. It reads what to do from its input and prints figures:
//! `bench/compare` starts it. `memory` is the only file that calls areev.

mod memory;

fn main() -> compare_facts::Result<()> {
    compare_facts::serve::<memory::Memory>()
}
