// Numbers, times and grains in words.
import type { Grain, Json } from "./types";

export const TYPES = [
  "belief", "event", "state", "workflow", "action", "observation", "goal", "reasoning", "consensus", "consent",
] as const;

const grouped = new Intl.NumberFormat("en-US");
export const count = (n: number): string => grouped.format(n);
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

export function bytes(n: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? plural(n, "byte") : `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export const milliseconds = (ms: number): string =>
  ms === 0 ? "0 ms" : ms < 1 ? `${ms.toFixed(2)} ms` : ms < 10 ? `${ms.toFixed(1)} ms` : `${count(Math.round(ms))} ms`;

/** `2026-03-13 10:02:32` in UTC; years that Date cannot hold stay a number. */
export function utc(ms: number, withSeconds = true): string {
  const date = new Date(ms);
  if (!Number.isFinite(date.getTime())) return String(ms);
  return date.toISOString().slice(0, withSeconds ? 19 : 16).replace("T", " ");
}

const asText = (value: Json | undefined): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** What a grain is about, and what it says of it: the two parts of a row. */
export function said(grain: Grain): { about: string; says: string } {
  const about = asText(grain.subject);
  const relation = asText(grain.relation).replace(/^mg:/, "").replaceAll("_", " ");
  switch (grain.type) {
    case "event":
      return { about: asText(grain.role) || about, says: asText(grain.content ?? grain.object) };
    case "observation":
      return { about: asText(grain.observer_id ?? grain.subject), says: join(relation, asText(grain.object ?? grain.content)) };
    case "goal":
      return { about, says: join(`[${asText(grain.goal_state) || "goal"}]`, asText(grain.object ?? grain.description)) };
    case "action":
      return { about: asText(grain.tool_name) || about, says: asText(grain.content ?? grain.object ?? grain.input) };
    case "consent":
      return {
        about: asText(grain.user_id ?? grain.subject),
        says: join(grain.is_withdrawal === true ? "withdraws consent" : "consents", asText(grain.scope)),
      };
    default: {
      const rest = asText(grain.object ?? grain.content ?? grain.conclusion ?? grain.description ?? grain.plan);
      return { about, says: join(relation, rest) };
    }
  }
}

const join = (a: string, b: string): string => (a && b ? `${a} ${b}` : a || b);

export const timeOf = (grain: Grain): number | null =>
  typeof grain.created_at === "number" ? grain.created_at : null;

/** The first moment at which the store held a version to be so. */
export const knownFrom = (grain: Grain): number | null =>
  typeof grain.system_valid_from === "number" ? grain.system_valid_from : timeOf(grain);

export const tagsOf = (grain: Grain): string[] =>
  Array.isArray(grain.structural_tags) ? grain.structural_tags.map(asText) : [];

export const isAddress = (text: string): boolean => /^(sha256:)?[0-9a-f]{64}$/.test(text);

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) out[i] = binary.charCodeAt(i);
  return out;
}

export const base64Length = (text: string): number =>
  Math.floor((text.length * 3) / 4) - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);

/** A place in UTF-8 bytes as a place in a string of JavaScript. */
export function fromByteOffset(text: string, offset: number): number {
  let seen = 0;
  let index = 0;
  for (const sign of text) {
    if (seen >= offset) break;
    const code = sign.codePointAt(0) ?? 0;
    seen += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    index += sign.length;
  }
  return index;
}

/** A text literal of CAL, whose escapes are those of JSON. */
export const literal = (text: string): string => JSON.stringify(text);

export function save(name: string, data: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
