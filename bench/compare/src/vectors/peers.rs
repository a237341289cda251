//! Who is asked for near vectors: ours and `hnsw_rs`, both with about 32 links at the bottom.

use std::sync::atomic::AtomicBool;

use grainstore_index::Sequence;
use grainstore_index::vectors::{
    BuildOptions, Metric, NearestQuery, SearchEffort, Space, Vector, VectorIndex, VectorView,
};
use hnsw_rs::prelude::{DistDot, Hnsw};

use crate::Result;

/// Links of a node above the bottom, half of those there, and nodes kept in mind while building.
const LINKS: usize = 16;
const BUILD_WIDTH: usize = 200;

/// Somebody who holds vectors.
pub(crate) trait Peer {
    /// The places of the nearest rows.
    fn nearest(&mut self, query: &[f32], limit: usize, width: usize) -> Result<Vec<usize>>;

    /// What only this one can do: name and median in microseconds.
    fn extras(&mut self, _queries: &[Vec<f32>]) -> Result<Vec<(&'static str, f64)>> {
        Ok(Vec::new())
    }
}

/// Makes a peer of these rows on so many threads.
type Build = fn(&[Vec<f32>], usize) -> Result<Box<dyn Peer>>;

/// Everybody.
pub(crate) fn contenders() -> [(&'static str, Build); 2] {
    [("grainstore", ours), ("hnsw_rs", hnsw)]
}

struct Ours {
    space: Space,
    view: VectorView,
    /// One row of a hundred.
    some: Vec<Sequence>,
}

fn ours(rows: &[Vec<f32>], threads: usize) -> Result<Box<dyn Peer>> {
    let dimension = rows.first().map_or(1, Vec::len);
    let space = Space::new("bench", dimension, Metric::Cosine)?;
    let mut keeper = VectorIndex::with_scan_up_to(1000);
    for (sequence, row) in (0..).zip(rows) {
        keeper.add(&space, Sequence::new(sequence), 0, &Vector::new(row.clone())?)?;
    }
    let stop = AtomicBool::new(false);
    while let Some(work) = keeper.next_work() {
        keeper.adopt(work.run(&BuildOptions { threads, stop: &stop }));
    }
    let some = (0..rows.len() as u64).step_by(100).map(Sequence::new).collect();
    Ok(Box::new(Ours { space, view: keeper.view(), some }))
}

impl Ours {
    fn ask(
        &self,
        query: &[f32],
        limit: usize,
        care: SearchEffort,
        within: Option<&[Sequence]>,
    ) -> Result<Vec<usize>> {
        let vector = Vector::new(query.to_vec())?;
        let ask = NearestQuery { vector: &vector, limit, within, care };
        let mut judge = |sequence: Sequence| -> grainstore_index::Result<Option<[u8; 32]>> {
            let mut address = [0; 32];
            address.split_at_mut(8).0.copy_from_slice(&sequence.get().to_be_bytes());
            Ok(Some(address))
        };
        let found = self.view.search(&self.space, &ask, &mut judge)?;
        let places = found.near.iter().map(|near| usize::try_from(near.sequence.get()));
        Ok(places.collect::<std::result::Result<_, _>>()?)
    }
}

impl Peer for Ours {
    fn nearest(&mut self, query: &[f32], limit: usize, width: usize) -> Result<Vec<usize>> {
        self.ask(query, limit, SearchEffort::Ef(width), None)
    }

    fn extras(&mut self, queries: &[Vec<f32>]) -> Result<Vec<(&'static str, f64)>> {
        let mut extras = Vec::new();
        for (what, care, within) in [
            ("as shipped", SearchEffort::Usual, None),
            ("exact, all", SearchEffort::Exact, None),
            ("exact, 1 %", SearchEffort::Usual, Some(self.some.as_slice())),
        ] {
            let mut times = Vec::new();
            for query in queries {
                let began = std::time::Instant::now();
                self.ask(query, 10, care, within)?;
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
            times.sort_by(f64::total_cmp);
            extras.push((what, times.get(times.len() / 2).copied().unwrap_or_default()));
        }
        Ok(extras)
    }
}

struct Raw(Hnsw<'static, f32, DistDot>);

/// Builds with all threads of the machine: it does not let us choose.
pub(crate) fn hnsw(rows: &[Vec<f32>], _threads: usize) -> Result<Box<dyn Peer>> {
    let index = Hnsw::new(LINKS, rows.len(), 16, BUILD_WIDTH, DistDot {});
    let rows: Vec<(&Vec<f32>, usize)> = rows.iter().zip(0..).collect();
    index.parallel_insert(&rows);
    Ok(Box::new(Raw(index)))
}

impl Peer for Raw {
    fn nearest(&mut self, query: &[f32], limit: usize, width: usize) -> Result<Vec<usize>> {
        Ok(self.0.search(query, limit, width).into_iter().map(|near| near.d_id).collect())
    }
}
