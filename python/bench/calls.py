"""What a call from Python costs beside the same call of Rust's client, in turns.

    cargo build --release -p grainstore-bench --bin sharing
    python python/bench/calls.py target/release/sharing [GRAINS [ROUNDS]]

The package that is installed is what is measured: `pip install ./python` makes a release build of it. Medians in
microseconds over all rounds; 20,000 grains and 10 rounds unless told otherwise.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grainstore

GETS = 2_000
PUTS = 200


def fact(number: int) -> dict[str, object]:
    """The belief that Rust's side has by this number."""
    relations = ["prefers", "works_at", "mg:knows", "lives_in", "plays"]
    return {
        "type": "belief",
        "subject": f"person-{number // 20}",
        "relation": relations[number % 5],
        "object": f"the answer number {number} to a question nobody asked",
        "confidence": 0.9,
        "created_at": 1_700_000_000_000 + number * 1000,
        "namespace": "bench",
        "source_type": "agent_inferred",
        "author_did": "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
        "importance": 0.5,
        "structural_tags": ["bench"],
    }


def times(call: object, inputs: list[object]) -> list[int]:
    taken = []
    for given in inputs:
        began = time.perf_counter_ns()
        call(given)  # type: ignore[operator]
        taken.append(time.perf_counter_ns() - began)
    return taken


def throughput(store: grainstore.Store, addresses: list[str], threads: int) -> float:
    """Gets a second of so many threads."""

    def work() -> None:
        for address in addresses:
            store.get(address)

    running = [threading.Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return threads * len(addresses) / (time.perf_counter() - began)


def import_ms(rounds: int) -> float:
    """What `import grainstore` adds to the start of an interpreter."""

    def run(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return (time.perf_counter() - began) * 1000

    with_it = [run("import grainstore") for _ in range(rounds)]
    without = [run("pass") for _ in range(rounds)]
    return statistics.median(with_it) - statistics.median(without)


def main() -> None:
    program = sys.argv[1]
    grains = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    with tempfile.TemporaryDirectory() as folder, grainstore.open(Path(folder) / "python") as store:
        rust = subprocess.Popen(
            [program, "--own", str(Path(folder) / "rust"), str(grains)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert rust.stdin is not None and rust.stdout is not None
        addresses = []
        for first in range(0, grains, 1_000):
            puts = store.put_many(fact(number) for number in range(first, min(first + 1_000, grains)))
            addresses.extend(put.address for put in puts)
        assert rust.stdout.readline().strip() == "ready"
        taken: dict[tuple[str, str], list[int]] = {}
        for turn in range(rounds):
            for kind, count in (("get", GETS), ("put", PUTS)):
                first = grains + turn * GETS
                rust.stdin.write(f"{kind} {first}\n")
                rust.stdin.flush()
                taken.setdefault(("rust", kind), []).extend(json.loads(rust.stdout.readline()))
                numbers = range(first, first + count)
                if kind == "get":
                    spread = [addresses[number * 2_654_435_761 % grains] for number in numbers]
                    found = times(store.get, list(spread))
                else:
                    found = times(store.put, [fact(number) for number in numbers])
                taken.setdefault(("python", kind), []).extend(found)
        rust.stdin.close()
        rust.wait()
        medians = {name: statistics.median(values) / 1000 for name, values in taken.items()}
        for kind in ("get", "put"):
            of_rust, of_python = medians["rust", kind], medians["python", kind]
            print(
                f"{kind}: Rust {of_rust:.2f} us, Python {of_python:.2f} us: "
                f"+{of_python - of_rust:.2f} us, x {of_python / of_rust:.2f}"
            )
        many = addresses[:5_000] * 4
        speed = [statistics.median(throughput(store, many, threads) for _ in range(3)) for threads in (1, 2)]
        print(f"gets of two threads: x {speed[1] / speed[0]:.2f} of one ({speed[0]:.0f}/s)")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(1_000_000 // len(many)):
            for address in many:
                store.get(address)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"a million gets: {grown} KiB more at the most")
    print(f"import: {import_ms(11):.1f} ms")
    native = next(Path(grainstore.__file__).parent.glob("_native*.so"))
    print(f"native half: {native.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
