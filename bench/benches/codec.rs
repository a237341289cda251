//! The codec: encode, decode, one field, JSON. `cargo bench -p grainstore-bench --bench codec`.
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use grainstore_bench::{blob, fact};
use grainstore_format::{ContentAddress, Encoding, Grain, GrainRef};

fn codec(c: &mut Criterion) {
    let grain = fact(1).unwrap();
    let msgpack = blob(1).unwrap();
    let cbor = grain.encode(Encoding::Cbor).unwrap();
    let json = serde_json::to_string(&grain).unwrap();

    let mut group = c.benchmark_group("codec");
    group.bench_function("encode_msgpack_and_hash", |b| {
        b.iter(|| black_box(&grain).encode(Encoding::MessagePack).unwrap());
    });
    group.bench_function("encode_cbor_and_hash", |b| {
        b.iter(|| black_box(&grain).encode(Encoding::Cbor).unwrap());
    });
    group.bench_function("decode_msgpack", |b| {
        b.iter(|| Grain::decode(black_box(msgpack.bytes())).unwrap());
    });
    group.bench_function("decode_cbor", |b| {
        b.iter(|| Grain::decode(black_box(cbor.bytes())).unwrap());
    });
    group.bench_function("from_json", |b| {
        b.iter(|| Grain::from_json(black_box(&json)).unwrap());
    });
    group.bench_function("read_one_field", |b| {
        b.iter(|| {
            let view = GrainRef::new(black_box(msgpack.bytes())).unwrap();
            black_box(view.text("subject").map(str::len))
        });
    });
    group.bench_function("hash", |b| {
        b.iter(|| ContentAddress::of(black_box(msgpack.bytes())));
    });
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
