// What the journeys share: the server, the browser, a watch on what must never happen, and axe.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { CODE, startStub } from "./stub.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = new URL("../../../docs/console/", import.meta.url).pathname;

const DIST = new URL("../dist/", import.meta.url);
const FILES = { "/": "index.html", "/console.js": "console.js", "/console.css": "console.css", "/icon.svg": "icon.svg" };

/**
 * The server to walk through. GRAINSTORE_URL names one that runs; else `grain serve` is started over the week of the
 * demo, or with GRAINSTORE_STUB=1 the stub. GRAIN is the command, that of the debug build if not given.
 */
export async function startServer() {
  if (process.env.GRAINSTORE_URL) {
    return {
      url: process.env.GRAINSTORE_URL.replace(/\/$/, ""),
      code: process.env.GRAINSTORE_CODE,
      token: process.env.GRAINSTORE_TOKEN,
      reader: process.env.GRAINSTORE_TOKEN_READER,
      close: () => undefined,
    };
  }
  const grain = process.env.GRAIN ?? new URL("../../../target/debug/grain", import.meta.url).pathname;
  const directory = mkdtempSync(join(tmpdir(), "console-"));
  const store = join(directory, "week.grains");
  execFileSync(grain, ["demo", "--keep", store], { stdio: "ignore" });
  const started = process.env.GRAINSTORE_STUB === "1" ? await overRpc(grain, store) : await overHttp(resolve(grain), directory);
  return {
    ...started,
    close: async () => {
      await started.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function overRpc(grain, store) {
  const stub = await startStub({ grain, store, dist: DIST });
  return { url: stub.url, code: CODE, token: "gst_operator", reader: "gst_reader", close: stub.close };
}

async function overHttp(grain, directory) {
  // Named from its own folder, so that no picture shows where that is.
  const [cwd, store] = [directory, "week.grains"];
  const tokenOf = (...how) => {
    const told = execFileSync(grain, ["--store", store, "tokens", "create", ...how], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return /gst_[\w-]+/.exec(told)[0];
  };
  const token = tokenOf("--label", "demo", "--tier", "1", "--as-operator");
  const reader = tokenOf("--label", "a reader", "--tier", "0");
  const child = spawn(grain, ["--store", store, "serve", "--listen", "127.0.0.1:0", "--log", "off"], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const printed = await new Promise((done, reject) => {
    let text = "";
    const read = (part) => {
      text += part;
      const found = /(http:\/\/[\d.:]+)\/#code=([\w-]+)/.exec(text);
      if (found) done(found);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`grain serve ended with ${code}: ${text}`)));
  });
  const close = async () => {
    const ended = new Promise((done) => child.on("exit", done));
    child.kill("SIGTERM");
    await ended;
  };
  return { url: printed[1], code: printed[2], token, reader, close };
}

/** With GRAINSTORE_LOCAL_DIST=1 the files of dist stand in for those in the server; its headers stay. */
async function localFiles(context, server) {
  if (process.env.GRAINSTORE_LOCAL_DIST !== "1") return;
  for (const [path, file] of Object.entries(FILES)) {
    await context.route(`${server.url}${path}`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: readFileSync(new URL(file, DIST)) });
    });
  }
}

export const startBrowser = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });

/** A page that remembers everything that must not happen. */
export async function openPage(browser, server, { scheme = "light", width = 1280, height = 800 } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "UTC",
    acceptDownloads: true,
  });
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await localFiles(context, server);
  const page = await context.newPage();
  const seen = [];
  const origin = new URL(server.url).origin;
  page.on("dialog", async (dialog) => {
    seen.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("pageerror", (error) => seen.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A refusal of the server is logged by the browser as a resource that did not load: that is no fault of the page.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) seen.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("blob:") && !url.startsWith("data:")) seen.push(`request: ${url}`);
  });
  page.setDefaultTimeout(15_000);
  const clean = async () => {
    seen.push(...(await page.evaluate(() => window.violations)).map((one) => `violation: ${one}`));
    assert.deepEqual(seen, []);
  };
  return { page, context, clean, close: () => context.close() };
}

export async function signIn(page, server, token = server.token) {
  await page.goto(`${server.url}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Find" }).waitFor();
}

export async function go(page, hash) {
  await page.evaluate((to) => void (location.hash = to), `#/${hash}`);
}

/** A call of the API beside the page, by the token. */
export async function call(server, method, path, body) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: response.status, answer: await response.json() };
}

export async function find(server, where, text) {
  const { answer } = await call(server, "POST", "/v1/query", { where, text, limit: 5 });
  assert.ok(answer.results?.length > 0, `nothing found: ${JSON.stringify({ where, text, answer })}`);
  return answer.results[0].content_address;
}

/** Zero findings of axe on what is shown now, in both themes. */
export async function accessible(page, name) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { dataset } = document.documentElement;
    const chosen = dataset.theme;
    const told = [];
    for (const theme of ["light", "dark"]) {
      dataset.theme = theme;
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      for (const { id, nodes } of violations) {
        told.push(`${theme}: ${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
      }
    }
    dataset.theme = chosen;
    return told;
  });
  assert.deepEqual(found, [], `axe on ${name}`);
}

export async function shot(page, name) {
  if (process.env.GRAINSTORE_SCREENSHOTS !== "1") return;
  mkdirSync(SHOTS, { recursive: true });
  const path = join(SHOTS, `${name}.png`);
  await page.mouse.move(0, 0);
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  // A palette of 64 colours is enough for these pages, and a third of the bytes.
  spawnSync("pngquant", ["--force", "--strip", "--speed", "1", "--nofs", "--output", path, "64", path]);
}
