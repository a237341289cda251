// What is committed in dist is what the sources build, byte for byte, within its bounds and without inline code.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";

const ROOT = new URL("..", import.meta.url).pathname;
const FILES = ["console.css", "console.js", "icon.svg", "index.html"];

test("dist is what the sources build", async () => {
  const directory = await mkdtemp(join(tmpdir(), "console-build-"));
  try {
    await build({ root: ROOT, logLevel: "error", build: { outDir: directory, emptyOutDir: true } });
    assert.deepEqual((await readdir(directory)).sort(), FILES);
    assert.deepEqual((await readdir(join(ROOT, "dist"))).sort(), FILES);
    for (const file of FILES) {
      const [built, kept] = await Promise.all([readFile(join(directory, file)), readFile(join(ROOT, "dist", file))]);
      assert.ok(built.equals(kept), `${file} is another one: run npm run build`);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("the page is small, and has nothing inline", async () => {
  const script = await readFile(join(ROOT, "dist/console.js"));
  assert.ok(script.length < 120_000, `${script.length} bytes`);
  const page = await readFile(join(ROOT, "dist/index.html"), "utf8");
  assert.ok(!/ style=|<style| on\w+=|javascript:/.test(page));
  assert.ok(!/<script(?![^>]* src=)/.test(page));
  assert.ok(!/https?:\/\//.test(page.replace("http://www.w3.org", "")));
  const style = await readFile(join(ROOT, "dist/console.css"), "utf8");
  assert.ok(!/url\(|@import/.test(style));
});

test("no source writes HTML", async () => {
  for (const entry of await readdir(join(ROOT, "src"), { recursive: true })) {
    if (!/\.tsx?$/.test(entry)) continue;
    const text = await readFile(join(ROOT, "src", entry), "utf8");
    assert.ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc/.test(text), entry);
  }
});
