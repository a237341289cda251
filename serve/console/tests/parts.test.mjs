// The parts without a page: reading events, places in a statement, hidden signs, questions. Vite reads the sources.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let vite;
let load;
before(async () => {
  const root = new URL("..", import.meta.url).pathname;
  vite = await createServer({ root, logLevel: "error", server: { middlewareMode: true, hmr: false, ws: false }, appType: "custom" });
  load = (path) => vite.ssrLoadModule(path);
});
after(() => vite?.close());

test("events are read however the stream is cut", async () => {
  const { EventReader } = await load("/src/changes.ts");
  const text = ": open\n\nid: 7\nevent: new\ndata: {}\n\nevent: refused\r\nid: 8\r\ndata: {\r\ndata: }\r\n\r\nid: 9\n\ndata: x\n\n";
  const wanted = [{ event: "new", id: 7 }, { event: "refused", id: 8 }, { event: "message", id: 9 }];
  for (let size = 1; size <= text.length; size += 1) {
    const reader = new EventReader();
    const got = [];
    for (let at = 0; at < text.length; at += size) got.push(...reader.take(text.slice(at, at + size)));
    assert.deepEqual(got, wanted, `in pieces of ${size}`);
  }
});

test("a place in bytes is a place in the text", async () => {
  const { fromByteOffset } = await load("/src/words.ts");
  const text = 'a é 😀 "x"';
  for (let at = 0; at <= text.length; at += 1) {
    if (at > 0 && /[\udc00-\udfff]/.test(text[at] ?? "")) continue;
    assert.equal(fromByteOffset(text, Buffer.byteLength(text.slice(0, at))), at);
  }
  assert.equal(fromByteOffset("abc", 99), 3);
});

test("hidden signs are spelled out, and emoji stay whole", async () => {
  const { piecesOf, visibleJson, hasHidden } = await load("/src/signs.ts");
  const told = (text, block = false) => piecesOf(text, block).map(({ text: piece, times }) => (times ? `<${piece}${times > 1 ? `*${times}` : ""}>` : piece)).join("");
  for (const [text, wanted] of [
    ["plain", "plain"],
    ["a\u202eb", "a<U+202E>b"],
    ["\u200b\u200b\u200bx", "<U+200B*3>x"],
    ["a\nb\tc\u0000", "a<\\n>b<\\t>c<U+0000>"],
    ["\ud800x", "<U+D800>x"],
    ["\u{e0001}", "<U+E0001>"],
    ["👩‍🔬 ❤️", "👩‍🔬 ❤️"],
    ["a\u200db", "a<U+200D>b"],
    ["\u3164", "<U+3164>"],
  ]) {
    assert.equal(told(text), wanted);
    assert.equal(hasHidden(text), wanted.includes("<"));
  }
  assert.equal(told("a\nb\u2028", true), "a\nb<U+2028>");
  // A text of nothing else does not make an element for each.
  const many = piecesOf("\u200b\u200c".repeat(50_000), false);
  assert.ok(many.length < 1100, String(many.length));
  assert.ok(told("\u200b\u200c".repeat(600) + "end").endsWith("<and 200 more that do not show, left out of the rest>end"));
  const json = JSON.stringify({ a: "x\u202ey" }, null, 2);
  assert.equal(visibleJson(json), '{\n  "a": "x\\u202ey"\n}');
  assert.deepEqual(JSON.parse(visibleJson(json)), JSON.parse(json));
});

test("filters become the question of the query", async () => {
  const { questionOf } = await load("/src/parts/filterask.tsx");
  const none = { words: "", type: "", subject: "", relation: "", tag: "", user: "", namespace: "", from: "", to: "", sort: "newest", superseded: "" };
  assert.deepEqual(questionOf(none), {});
  assert.deepEqual(questionOf({ ...none, sort: "oldest", superseded: "yes" }), { sort: "oldest", include_superseded: true });
  assert.deepEqual(
    questionOf({ ...none, words: "tea", type: "belief", user: "a", tag: " x, ,y ", from: "2026-03-01", to: "2026-03-01", sort: "oldest" }),
    { text: "tea", where: { type: "belief", user_id: "a", tags_all: ["x", "y"], time_from: 1772323200000, time_to: 1772409599999 } },
  );
});

test("statements that write are told from others", async () => {
  const { writes } = await load("/src/parts/calask.tsx");
  for (const text of ["ADD belief", " add belief", "-- a note\nREVERT x", 'LET $a = RECALL LIKE ";"; SUPERSEDE x', "SUPERSEDE sha256:ab"]) {
    assert.equal(writes(text), true, text);
  }
  for (const text of ["RECALL", "EXPLAIN ADD belief", 'RECALL LIKE "; ADD belief"', "RECALL -- ; ADD", "ADDED", `${"LET $a = x; ".repeat(5000)}RECALL`]) {
    assert.equal(writes(text), false, text.slice(0, 40));
  }
});

test("a version is known from when the store knew it", async () => {
  const { spansOf } = await load("/src/pages/history.tsx");
  const version = (address, grain, to) => ({ address, grain, state: { system_valid_to: to } });
  const spans = spansOf([version("c", { created_at: 5, system_valid_from: 30 }, null), version("b", { created_at: 20 }, 30), version("a", { created_at: 10 }, 20)]);
  assert.deepEqual(spans.map(({ version: { address }, from, to }) => [address, from, to]), [["a", 10, 20], ["b", 20, 30], ["c", 30, null]]);
});

test("a question stays one literal of the statement", async () => {
  const { statementOf } = await load("/src/pages/replay.tsx");
  assert.equal(
    statementOf('say "x" \\', 9),
    'ASSEMBLE FOR "say \\"x\\" \\\\" FROM found: (RECALL WHERE query = "say \\"x\\" \\\\" LIMIT 50) BUDGET 9 tokens WITH score_breakdown, explanation',
  );
});

test("routes hold pages and addresses, nothing else", async () => {
  const { parse } = await load("/src/router.ts");
  const address = "ab".repeat(32);
  for (const [hash, page, id] of [
    ["", "find", ""], ["#/", "find", ""], ["#/audit", "audit", ""], [`#/grain/${address}`, "grain", address],
    ["#/grain/../../x", "grain", ""], ["#/nowhere", "missing", ""], ["#/grain/<script>", "grain", ""],
  ]) assert.deepEqual(parse(hash), { page, id });
});
