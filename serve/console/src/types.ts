// The shapes of the answers that the pages read. Fields of a grain are whatever the writer stored.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Grain = { type?: string; [name: string]: Json | undefined };

export interface Access {
  label?: string | null;
  namespace?: string | null;
  user_id?: string | null;
  actor?: string | null;
  purposes?: string[];
  tier: 0 | 1;
  operator: boolean;
  expires_at?: number | null;
}

export interface State {
  superseded_by: string | null;
  system_valid_to: number | null;
  verification_status: string;
  contradicted: boolean;
  needs_review: boolean;
  held: boolean;
  access_count?: number;
  last_accessed_at?: number | null;
  embedding_refs?: { model: string; dimensions: number; distance_metric: string; chunk_index?: number }[];
}

export interface Version {
  address: string;
  grain: Grain;
  state: State;
}

export interface Signature {
  verdict: string;
  did?: string;
  reason?: string;
}

export interface Whole extends Version {
  blob: string;
  cose?: string;
  signature?: Signature;
}

export interface Found {
  grain: Grain;
  score: number;
  matched_fields: string[];
  content_address: string;
  state?: State;
}

export interface QueryAnswer {
  results: Found[];
  total: number | null;
  next_cursor: string | null;
}

export interface Protection {
  address: string | null;
  link: string;
  mode: string;
  scope: string;
  demand?: string | null;
}

export interface Policy {
  mode: string;
  scope: string;
  authorized: string[];
  holds: boolean | number;
  threshold?: number;
  locked_until?: number;
  fallback_mode?: string;
  fails_closed: boolean;
  open_to: string;
  then_open_to?: string;
  protected_by?: Protection[];
  demands: string[];
  warnings?: string[];
}

export interface Linked {
  address: string;
  hops?: number;
  state?: State;
}

export interface Related {
  address: string;
  kind: string;
  direction: string;
}

export interface AuditEntry {
  sequence: number;
  time_ms: number;
  operation: string;
  actor: string;
  subjects: string[];
  decision: string;
  rules: string[];
  results?: string[];
  reason?: string;
  why?: string;
  code?: string;
  refused_by?: string;
  count?: number;
  status?: string;
  call?: { [name: string]: Json };
  [name: string]: Json | undefined;
}

export interface AuditAnswer {
  entries: AuditEntry[];
  head: { sequence: number; hash: string } | null;
}

export interface Erasure {
  counts: { erased: number; skipped: number };
  holds: string[];
  application?: { rows: number; blobs: number };
  scrubbed: boolean;
  scrub_failure?: { code: string; message: string };
  certificate: { sequence: number; hash: string; [name: string]: Json } | null;
  refusal?: { code: string; message: string };
}

export interface Report {
  user_id?: string;
  addresses?: string[];
  counts?: { [name: string]: number };
  versions?: Version[];
  next_cursor?: string | null;
}

export interface Position {
  start: number;
  end: number;
  line: number;
  col: number;
}

export interface Candidate {
  content_address: string;
  score: number;
  matched_fields: string[];
  shown?: boolean;
  score_breakdown?: { [signal: string]: number };
  explanation?: string;
}

export interface SourceOutcome {
  full: number;
  standard: number;
  summary: number;
  omitted: number;
  allocated: number;
  used: number;
  grains: Candidate[];
}

export interface CalAnswer {
  _cal: {
    statement_type: string;
    tier: number;
    duration_ms: number;
    budget?: { tokens_used: number; grains_returned: number; grains_scanned: number };
    warnings?: Json[];
  };
  results?: Found[];
  total?: number | null;
  formatted?: string;
  formatted_context?: { format: string; text: string; tokens: number };
  sources?: { [label: string]: SourceOutcome };
  [name: string]: unknown;
}

export interface Prepared {
  token: Json;
  tier: number;
  side_effects: string[];
  target?: string | null;
  changes?: { field: string; from?: Json; to?: Json }[];
}

export interface Finding {
  name: string;
  health: "good" | "notice" | "bad";
  detail: string;
  code?: string;
  advice?: string;
}

export interface Metrics {
  uptime_ms: number;
  requests: {
    route: string;
    method: string;
    count: number;
    errors: number;
    latency_ms: { p50: number | null; p99: number | null };
  }[];
  series: { at_ms: number; requests: number; errors: number; p50_ms: number | null; p99_ms: number | null }[];
}
