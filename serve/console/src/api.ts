// The calls to the server. The CSRF token lives in this module's memory and nowhere else.
import type { Access, Json, Position } from "./types";

/** A refusal, as the server words it (application/problem+json), or a failure to reach it. */
export class Problem extends Error {
  status: number;
  code: string;
  hint?: string;
  position?: Position;
  suggestion?: string;
  example?: string;
  retryAfter?: number;

  constructor(status: number, body: { [name: string]: unknown }, retryAfter?: number) {
    super(String(body.detail ?? body.title ?? "The server gave no reason."));
    this.status = status;
    this.code = typeof body.code === "string" ? body.code : "";
    if (typeof body.hint === "string") this.hint = body.hint;
    if (typeof body.suggestion === "string") this.suggestion = body.suggestion;
    if (typeof body.example === "string") this.example = body.example;
    if (body.position && typeof body.position === "object") this.position = body.position as Position;
    if (retryAfter) this.retryAfter = retryAfter;
  }
}

interface Session {
  csrf: string;
  access: Access;
}

let session: Session | null = null;
let whenSignedOut: (() => void) | null = null;

export function onSignedOut(call: () => void): void {
  whenSignedOut = call;
}

export type Parameters = { [name: string]: string | number | boolean | null | undefined };

function pathWith(path: string, parameters?: Parameters): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (session) headers.set("X-CSRF-Token", session.csrf);
  if (init.body) headers.set("Content-Type", "application/json");
  try {
    return await fetch(path, { ...init, headers, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, {
      code: "UNREACHABLE",
      detail: "The server cannot be reached.",
      hint: "See whether grain serve is still running, then try again.",
    });
  }
}

async function problemOf(response: Response): Promise<Problem> {
  let body: { [name: string]: unknown } = { title: response.statusText || `Status ${response.status}` };
  try {
    body = await response.json();
  } catch {
    // An answer that is not JSON, such as a proxy's: the status says what there is to say.
  }
  const wait = Number(response.headers.get("Retry-After"));
  return new Problem(response.status, body, Number.isFinite(wait) && wait > 0 ? wait : undefined);
}

async function answerOf<T>(response: Response): Promise<T> {
  if (response.ok) return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  const problem = await problemOf(response);
  if (problem.status === 401 && session) {
    session = null;
    whenSignedOut?.();
  }
  throw problem;
}

export async function read<T>(path: string, parameters?: Parameters, signal?: AbortSignal): Promise<T> {
  return answerOf<T>(await send(pathWith(path, parameters), { method: "GET", signal: signal ?? null }));
}

export async function post<T>(path: string, body: Json | object = {}, signal?: AbortSignal): Promise<T> {
  return answerOf<T>(await send(path, { method: "POST", body: JSON.stringify(body), signal: signal ?? null }));
}

/** Opens a stream of server-sent events; the caller reads its body. */
export async function stream(path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
  const response = await send(pathWith(path, parameters), {
    method: "GET",
    headers: { Accept: "text/event-stream" },
    signal,
  });
  if (!response.ok) await answerOf(response);
  return response;
}

async function sessionFrom(response: Response): Promise<Access> {
  if (!response.ok) throw await problemOf(response);
  session = (await response.json()) as Session;
  return session.access;
}

/** Signs in by a one-time code or by a token. */
export async function signIn(credential: { code: string } | { token: string }): Promise<Access> {
  session = null;
  return sessionFrom(await send("/console/session", { method: "POST", body: JSON.stringify(credential) }));
}

/** The session that the cookie still holds after a reload; null without one. */
export async function resume(): Promise<Access | null> {
  const response = await send("/console/session", { method: "GET" });
  return response.status === 401 ? null : sessionFrom(response);
}

export async function signOut(): Promise<void> {
  const response = await send("/console/session", { method: "DELETE" });
  session = null;
  if (!response.ok && response.status !== 401) throw await problemOf(response);
}

export const grainPath = (address: string, rest = ""): string => `/v1/grains/${encodeURIComponent(address)}${rest}`;
export const userPath = (user: string, rest: string): string => `/v1/users/${encodeURIComponent(user)}${rest}`;
