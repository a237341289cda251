//! Containers of 10,000 grains: written and read in each compression, beside encoding and decoding the
//! same grains alone. `cargo bench -p grainstore-bench --bench container`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_bench::fact;
use grainstore_format::container::{
    Compression, Container, ContainerPlan, ContainerWriter, PlannedEntry,
};
use grainstore_format::{Blob, DecodeOptions, Encoding, Error, Grain};

const GRAINS: usize = 10_000;

fn write(blobs: &[(Blob, PlannedEntry)], compression: Compression) -> Vec<u8> {
    let mut plan = ContainerPlan::new(compression);
    blobs.iter().for_each(|(_, planned)| assert!(plan.add(planned).unwrap()));
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    blobs.iter().for_each(|(blob, _)| writer.push(blob.bytes()).unwrap());
    writer.finish(None::<Result<_, Error>>).unwrap().0
}

fn container(c: &mut Criterion) {
    let grains: Vec<Grain> = (0..GRAINS).map(|n| fact(n).unwrap()).collect();
    let encode = |grain: &Grain| grain.encode(Encoding::MessagePack).unwrap();
    let blobs: Vec<_> = grains
        .iter()
        .map(|grain| {
            let blob = encode(grain);
            let planned = PlannedEntry::of(blob.bytes(), grain.created_at()).unwrap();
            (blob, planned)
        })
        .collect();

    let mut group = c.benchmark_group("container_10000");
    group.sample_size(20).throughput(Throughput::Elements(GRAINS as u64));
    group.bench_function("encode_alone", |b| {
        b.iter(|| grains.iter().map(|grain| encode(black_box(grain)).bytes().len()).sum::<usize>());
    });
    group.bench_function("decode_and_hash_alone", |b| {
        b.iter(|| {
            for (blob, _) in &blobs {
                black_box(Grain::decode(black_box(blob.bytes())).unwrap());
                black_box(Blob::from_bytes(blob.bytes().to_vec()));
            }
        });
    });
    for compression in Compression::ALL {
        let bytes = write(&blobs, compression);
        println!("{}: {} bytes", compression.name(), bytes.len());
        group.bench_function(format!("write_{}", compression.name()), |b| {
            b.iter(|| write(black_box(&blobs), compression));
        });
        group.bench_function(format!("read_{}", compression.name()), |b| {
            b.iter(|| {
                let opened = Container::open(bytes.as_slice(), &DecodeOptions::default()).unwrap();
                opened.verify().unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, container);
criterion_main!(benches);
