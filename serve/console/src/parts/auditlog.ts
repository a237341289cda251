// Pages of the audit log, the newest entries first. The server answers oldest first, behind a sequence: so each
// page is a window below the last one.
import { read } from "../api";
import type { AuditAnswer, AuditEntry } from "../types";

export interface Filter {
  reads: boolean;
  by: string;
  operation: string;
  decision: string;
}

export interface Page {
  entries: AuditEntry[];
  /** The highest sequence that was looked at, and the lowest. */
  from: number;
  to: number;
  head: { sequence: number; hash: string } | null;
}

const WINDOW = 200;
const WINDOWS = 10;
export const PAGE = 50;

const ask = (filter: Filter, after: number | null, limit: number, signal: AbortSignal) =>
  read<AuditAnswer>("/v1/audit", { after, limit, by: filter.by || null, reads: filter.reads || null }, signal);

export const fits = (filter: Filter) => (entry: AuditEntry): boolean =>
  (filter.operation === "" || entry.operation === filter.operation) &&
  (filter.decision === "" || (filter.decision === "refused") === (entry.decision !== "done"));

/** The page whose newest entry is at `from`, or the newest page of all. */
export async function pageOf(filter: Filter, from: number | null, signal: AbortSignal): Promise<Page> {
  const { head } = await ask(filter, null, 0, signal);
  if (!head) return { entries: [], from: 0, to: 0, head };
  const top = Math.min(from ?? head.sequence, head.sequence);
  const entries: AuditEntry[] = [];
  let high = top;
  for (let window = 0; window < WINDOWS && high >= 0 && entries.length < PAGE; window += 1) {
    const low = Math.max(0, high - WINDOW + 1);
    const answer = await ask(filter, low === 0 ? null : low - 1, high - low + 1, signal);
    const found = answer.entries.filter((entry) => entry.sequence >= low && entry.sequence <= high);
    entries.push(...found.filter(fits(filter)).reverse());
    high = low - 1;
  }
  if (entries.length > PAGE) {
    entries.length = PAGE;
    high = (entries[PAGE - 1]?.sequence ?? 0) - 1;
  }
  return { entries, from: top, to: high + 1, head };
}
