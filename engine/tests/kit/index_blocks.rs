//! The blocks of the index of a closed store, read and written without the library.

use redb::{ReadableTable, TableDefinition, TableHandle, WriteTransaction};
use twox_hash::XxHash64;

pub(crate) type Runs = TableDefinition<'static, u64, &'static [u8]>;

/// The numbers of lists, and the bytes of their rows.
pub(crate) const ALL: (u8, usize) = (0, 18);
pub(crate) const SUBJECT: (u8, usize) = (2, 23);
pub(crate) const SUBJECT_RELATION: (u8, usize) = (5, 28);
/// Its rows are whole: `address:32 sequence:4`.
pub(crate) const ADDRESSES: (u8, usize) = (12, 36);

const RESTART_ROWS: usize = 16;

/// The names of the runs.
pub(crate) fn runs(txn: &WriteTransaction) -> Vec<&'static str> {
    let names = txn.list_tables().unwrap().map(|table| table.name().to_owned());
    let mut runs: Vec<String> = names.filter(|name| name.starts_with("index.run.")).collect();
    runs.sort();
    runs.into_iter().map(|name| &*name.leak()).collect()
}

/// Changes the rows of each block of a list that `change` says it has changed. For a plain store: a block
/// has a checksum.
pub(crate) fn edit(
    txn: &WriteTransaction,
    (list, width): (u8, usize),
    mut change: impl FnMut(&mut Vec<Vec<u8>>) -> bool,
) {
    for run in runs(txn) {
        let mut table = txn.open_table(Runs::new(run)).unwrap();
        let first = u64::from(list) << 32;
        let rows = table.range(first..first + (1 << 32)).unwrap();
        let blocks: Vec<(u64, Vec<u8>)> = rows
            .map(|row| row.map(|(key, block)| (key.value(), block.value().to_vec())).unwrap())
            .collect();
        for (key, block) in blocks {
            let is_whole = list == ADDRESSES.0;
            let mut rows = decode(&block, (width, is_whole));
            if change(&mut rows) {
                let mut block = encode(&rows, is_whole);
                let checksum = XxHash64::oneshot(key, &block);
                block.extend(checksum.to_be_bytes());
                block.extend([0; 8]);
                table.insert(key, block.as_slice()).unwrap();
            }
        }
    }
}

fn decode(block: &[u8], (width, is_whole): (usize, bool)) -> Vec<Vec<u8>> {
    let (mut at, mut rows) = (2, Vec::<Vec<u8>>::new());
    for _ in 0..u16::from_be_bytes([block[0], block[1]]) {
        let shared = if is_whole { 0 } else { usize::from(block[at]) };
        at += usize::from(!is_whole);
        let mut row = rows.last().map_or(Vec::new(), |row| row[..shared].to_vec());
        row.extend_from_slice(&block[at..at + width - shared]);
        at += width - shared;
        rows.push(row);
    }
    rows
}

fn encode(rows: &[Vec<u8>], is_whole: bool) -> Vec<u8> {
    let mut block = u16::try_from(rows.len()).unwrap().to_be_bytes().to_vec();
    let start = block.len();
    let mut restarts = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if !is_whole && number % RESTART_ROWS == 0 {
            restarts.extend(u16::try_from(block.len() - start).unwrap().to_be_bytes());
        }
        block.extend((!is_whole).then_some(0));
        block.extend_from_slice(row);
    }
    block.extend(restarts);
    block
}
