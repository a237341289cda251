// Pages of the audit log, the newest entries first. The server answers oldest first, behind a sequence: so each
// page is a window below the last one.
import { read } from "../api";
import type { AuditAnswer, AuditEntry } from "../types";

export interface Filter {
  reads: boolean;
  /** A DID, which the server knows the name in the log of. */
  by: string;
  /** A name as it stands in the log, or its beginning. */
  actor: string;
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

export const PAGE = 50;
const FILTERED = 1000;
const WINDOWS = 10;

const ask = (filter: Filter, after: number | null, limit: number, signal: AbortSignal) =>
  read<AuditAnswer>("/v1/audit", { after, limit, by: filter.by || null, reads: filter.reads || null }, signal);

export const fits = (filter: Filter) => (entry: AuditEntry): boolean =>
  entry.actor.startsWith(filter.actor) &&
  (filter.operation === "" || entry.operation === filter.operation) &&
  (filter.decision === "" || (filter.decision === "refused") === (entry.decision !== "done"));

/** The page whose newest entry is at `from`, or the newest page of all. */
export async function pageOf(filter: Filter, from: number | null, signal: AbortSignal): Promise<Page> {
  const { head } = await ask(filter, null, 0, signal);
  if (!head) return { entries: [], from: 0, to: 0, head };
  const top = Math.min(from ?? head.sequence, head.sequence);
  const entries: AuditEntry[] = [];
  // With a filter few entries of a window may be wanted, without one all of them are.
  const size = filter.actor || filter.operation || filter.decision ? FILTERED : PAGE;
  let high = top;
  for (let window = 0; window < WINDOWS && high >= 0 && entries.length < PAGE; window += 1) {
    const low = Math.max(0, high - size + 1);
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
