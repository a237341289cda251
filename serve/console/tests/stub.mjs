// Stands in for `grain serve` where there is none: serves dist with the policy of the server, and answers the routes of
// the contract by `grain rpc`, so the answers are real. Run alone: GRAIN=path/to/grain node tests/stub.mjs STORE [PORT]
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export const TOKENS = {
  gst_operator: { label: "demo operator", tier: 1, operator: true },
  gst_reader: { label: "demo reader", tier: 0, operator: false },
};
export const CODE = "stub-code";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/console.js": ["console.js", "text/javascript; charset=utf-8"],
  "/console.css": ["console.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

// method, path, method of rpc, and: name = what the last part of the path is called; writes, operator = who may
const ROUTES = [
  ["GET", "/v1", "hello"],
  ["POST", "/v1/grains", "put", { writes: true }],
  ["POST", "/v1/grains/batch", "put_batch", { writes: true }],
  ["POST", "/v1/grains/get", "get_batch"],
  ["GET", "/v1/grains/{address}", "get"],
  ["GET", "/v1/grains/{address}/exists", "exists"],
  ["GET", "/v1/grains/{address}/policy", "policy_explain"],
  ["GET", "/v1/grains/{address}/history", "history"],
  ["GET", "/v1/grains/{address}/versions", "versions"],
  ["GET", "/v1/grains/{address}/ancestry", "ancestry"],
  ["GET", "/v1/grains/{address}/children", "children"],
  ["GET", "/v1/grains/{address}/related", "related"],
  ["POST", "/v1/grains/{old}/supersede", "supersede", { writes: true }],
  ["POST", "/v1/grains/{address}/contradict", "contradict", { writes: true }],
  ["POST", "/v1/grains/{address}/hold", "hold", { writes: true }],
  ["POST", "/v1/grains/{address}/lift-hold", "lift_hold", { writes: true }],
  ["POST", "/v1/grains/{address}/verification", "set_verification", { writes: true }],
  ["POST", "/v1/grains/{address}/erase", "erase", { operator: true }],
  ["GET", "/v1/addresses", "resolve"],
  ["POST", "/v1/query", "query"],
  ["POST", "/v1/cal", "cal"],
  ["POST", "/v1/cal/prepare", "prepare"],
  ["POST", "/v1/cal/execute", "execute", { writes: true }],
  ["GET", "/v1/audit", "audit"],
  ["POST", "/v1/checkpoint", "checkpoint", { operator: true }],
  ["POST", "/v1/verify", "verify"],
  ["GET", "/v1/stats", "stats", { operator: true }],
  ["GET", "/v1/doctor", "doctor"],
  ["GET", "/v1/policy", "policy_show"],
  ["GET", "/v1/users/{user_id}/report", "subject_report"],
  ["POST", "/v1/users/{user_id}/erase", "erase_user", { operator: true }],
];

const WORDS = [
  "RECALL", "ASSEMBLE", "BATCH", "COALESCE", "DESCRIBE", "EXISTS", "EXPLAIN", "HISTORY", "beliefs", "events", "states",
  "goals", "observations", "ABOUT", "WHERE", "LIKE", "RECENT", "LIMIT", "ORDER BY", "SELECT", "COUNT", "GROUP BY",
  "subject", "relation", "object", "confidence", "WITH", "superseded", "AND", "BUDGET", "tokens", "FROM",
];

class Rpc {
  constructor(grain, store) {
    this.child = spawn(grain, ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
    this.waiting = new Map();
    this.last = 0;
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      const answer = JSON.parse(line);
      this.waiting.get(answer.id)?.(answer);
      this.waiting.delete(answer.id);
    });
    this.ready = this.call("open", { path: store });
  }

  call(method, params) {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  close() {
    this.child.stdin.end();
  }
}

const TITLES = { 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone", 422: "Unprocessable Content", 500: "Internal Server Error" };

function statusOf(error) {
  const code = error.data?.code ?? "";
  if (error.code === -32602) return 400;
  if (["ERR_ACCESS", "ERR_POLICY", "ERR_INVALIDATION_DENIED", "CAL-E044"].includes(code)) return 403;
  if (code === "ERR_NOT_FOUND") return 404;
  if (code === "ERR_CONFLICT") return 409;
  if (code === "ERR_ERASED") return 410;
  if (code.startsWith("CAL-") || code === "ERR_SCHEMA") return 422;
  return code === "" ? 500 : 400;
}

function match(method, path) {
  for (const [verb, pattern, rpc, rules = {}] of ROUTES) {
    if (verb !== method) continue;
    const names = [];
    const source = pattern.replace(/\{(\w+)\}/g, (_, name) => (names.push(name), "([^/]+)"));
    const found = new RegExp(`^${source}$`).exec(path);
    if (found) return { pattern, rpc, rules, params: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(found[at + 1])])) };
  }
  return null;
}

// In a query string everything is text; the parameters that are none there are told by their names.
const NUMBERS = ["limit", "after", "max_hops", "as_of"];
const FLAGS = ["include_superseded", "reads", "versions", "pages"];
const typed = (name, value) =>
  NUMBERS.includes(name) ? Number(value) : FLAGS.includes(name) ? value === "true" : name === "cursor" && /^\d+$/.test(value) ? Number(value) : value;

export async function startStub({ grain, store, port = 0, dist }) {
  const rpc = new Rpc(grain, store);
  await rpc.ready;
  const sessions = new Map();
  let codes = new Set([CODE, `${CODE}-2`, `${CODE}-3`]);
  const began = Date.now();
  const counts = new Map();
  const series = Array.from({ length: 120 }, (_, at) => ({
    at_ms: began - (120 - at) * 5000, requests: 40 + Math.round(25 * Math.sin(at / 9)) + (at % 7), errors: at % 31 === 0 ? 2 : 0,
    p50_ms: 0.4 + 0.1 * Math.sin(at / 5), p99_ms: 2.2 + Math.sin(at / 7),
  }));

  const body = async (request) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat(parts).toString("utf8");
    return text === "" ? {} : JSON.parse(text);
  };
  const json = (response, status, value, type = "application/json", headers = {}) => {
    response.writeHead(status, { "content-type": type, "cache-control": "no-store", ...headers });
    response.end(value === undefined ? undefined : JSON.stringify(value));
  };
  const refuse = (response, status, code, detail, more = {}) =>
    json(response, status, { type: "about:blank", title: TITLES[status] ?? "Error", status, code, detail, ...more }, "application/problem+json");

  function sessionOf(request) {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (bearer) return TOKENS[bearer] ? { access: TOKENS[bearer], csrf: null } : null;
    const id = /grain_session=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1];
    return sessions.get(id) ?? null;
  }

  async function consoleSession(request, response) {
    const session = sessionOf(request);
    if (request.method === "GET") {
      return session ? json(response, 200, { csrf: session.csrf, access: session.access }) : refuse(response, 401, "ERR_ACCESS", "not signed in");
    }
    if (request.method === "DELETE") {
      for (const [id, one] of sessions) if (one === session) sessions.delete(id);
      return json(response, 204);
    }
    const { code, token } = await body(request);
    const access = codes.delete(code) ? TOKENS.gst_operator : TOKENS[token];
    if (!access) return refuse(response, 401, "ERR_ACCESS", "the code or token does not hold");
    const id = crypto.randomUUID();
    const next = { csrf: crypto.randomUUID(), access };
    sessions.set(id, next);
    return json(response, 200, next, "application/json", { "set-cookie": `grain_session=${id}; HttpOnly; SameSite=Strict; Path=/` });
  }

  async function complete(request, response) {
    const { before } = await body(request);
    const word = /[\w]*$/.exec(before)[0];
    const candidates = WORDS.filter((one) => word !== "" && one.toLowerCase().startsWith(word.toLowerCase())).map((text) => ({ text, insert: text }));
    return json(response, 200, { start: before.length - word.length, candidates });
  }

  async function changes(url, request, response) {
    let last = Number(request.headers["last-event-id"] ?? url.searchParams.get("after") ?? 0);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": open\n\n");
    const NAMES = { put: "new", supersede: "superseded", erase: "erased", erase_user: "erased" };
    const timer = setInterval(async () => {
      const { result } = await rpc.call("audit", { after: last, limit: 100 });
      for (const entry of result?.entries ?? []) {
        if (entry.sequence <= last) continue;
        last = entry.sequence;
        const { sequence, time_ms, operation, subjects, decision, code } = entry;
        const event = decision === "done" ? (NAMES[operation] ?? "changed") : "refused";
        response.write(`event: ${event}\nid: ${sequence}\ndata: ${JSON.stringify({ sequence, time_ms, operation, subjects, decision, code })}\n\n`);
      }
    }, 250);
    request.on("close", () => clearInterval(timer));
  }

  async function api(url, request, response) {
    const session = sessionOf(request);
    if (!session) return refuse(response, 401, "ERR_ACCESS", "not signed in");
    if (session.csrf !== null && request.headers["x-csrf-token"] !== session.csrf) return refuse(response, 403, "ERR_ACCESS", "the CSRF token is missing");
    if (url.pathname === "/v1/cal/complete") return complete(request, response);
    if (url.pathname === "/v1/changes") return changes(url, request, response);
    if (url.pathname === "/v1/metrics.json") {
      const requests = [...counts.values()];
      return session.access.operator ? json(response, 200, { uptime_ms: Date.now() - began, requests, series }) : refuse(response, 403, "ERR_ACCESS", "for the operator");
    }
    const route = match(request.method, url.pathname);
    if (!route) return refuse(response, 404, "ERR_NOT_FOUND", "no such route");
    if ((route.rules.writes && session.access.tier < 1) || (route.rules.operator && !session.access.operator)) {
      return refuse(response, 403, "ERR_ACCESS", "this session may not do that", { hint: "sign in with a token that may" });
    }
    const params = { ...Object.fromEntries([...url.searchParams].map(([name, value]) => [name, typed(name, value)])), ...(await body(request)), ...route.params };
    if (params.tier > session.access.tier) return refuse(response, 403, "CAL-E044", "this session reads only");
    const start = performance.now();
    const { result, error } = await rpc.call(route.rpc, params);
    const key = `${request.method} ${route.pattern}`;
    const one = counts.get(key) ?? { route: route.pattern, method: request.method, count: 0, errors: 0, latency_ms: { p50: 0, p99: 0 } };
    one.count += 1;
    if (error) one.errors += 1;
    one.latency_ms = { p50: performance.now() - start, p99: Math.max(one.latency_ms.p99, performance.now() - start) };
    counts.set(key, one);
    if (!error) return json(response, 200, result);
    return refuse(response, statusOf(error), error.data?.code ?? "", error.message, error.data);
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("referrer-policy", "no-referrer");
    const work = async () => {
      if (FILES[url.pathname] && request.method === "GET") {
        const [name, type] = FILES[url.pathname];
        response.writeHead(200, { "content-type": type });
        return response.end(await readFile(new URL(name, dist)));
      }
      if (url.pathname === "/console/session") return consoleSession(request, response);
      if (url.pathname.startsWith("/v1")) return api(url, request, response);
      return refuse(response, 404, "ERR_NOT_FOUND", "nothing is here");
    };
    work().catch((error) => refuse(response, 500, "ERR_IO", String(error)));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      rpc.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [store, port] = process.argv.slice(2);
  const stub = await startStub({ grain: process.env.GRAIN ?? "grain", store, port: Number(port ?? 7117), dist: new URL("../dist/", import.meta.url) });
  console.log(`${stub.url}/#code=${CODE}`);
}
