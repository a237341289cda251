// The pages of a query, read one after the other as the list asks for them. What was read stays for the way back.
import { useEffect, useRef, useState } from "preact/hooks";
import { post, Problem } from "../api";
import { recalled, remember } from "../kept";
import type { Json, QueryAnswer } from "../types";
import { type Row, rowOf } from "./list";

export interface Question {
  where?: { [name: string]: Json };
  text?: string;
  sort?: string;
  include_superseded?: boolean;
}

interface Loaded {
  question: Question;
  rows: Row[];
  cursor: string | null;
  complete: boolean;
  total: number | null;
  problem: Problem | null;
  busy: boolean;
}

const FIRST = 200;
const LATER = 1000;
/** Beyond, a browser has neither the memory nor the pixels for a list. */
export const MOST = 250_000;

export function useGrains(name: string) {
  const [loaded, setLoaded] = useState<Loaded | null>(() => recalled<Loaded | null>(name, null));
  const now = useRef(loaded);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const keep = (next: Loaded) => {
    now.current = next;
    // A failure is not kept for the way back: then it is asked again.
    remember(name, next.problem ? null : { ...next, busy: false });
    setLoaded(next);
  };

  const page = async (question: Question, before: Loaded | null) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const rows = before?.rows ?? [];
    const empty: Loaded = { question, rows, cursor: null, complete: false, total: null, problem: null, busy: true };
    keep(before ? { ...before, problem: null, busy: true } : empty);
    try {
      const answer = await post<QueryAnswer>(
        "/v1/query",
        before ? { ...question, limit: LATER, cursor: before.cursor } : { ...question, limit: FIRST, total: true },
        controller.signal,
      );
      if (controller.signal.aborted) return;
      const scored = question.text !== undefined;
      const all = [...rows, ...answer.results.map((found) => rowOf(found, scored))];
      keep({
        question,
        rows: all,
        cursor: answer.next_cursor,
        complete: answer.next_cursor === null || all.length >= MOST,
        total: before ? before.total : answer.total,
        problem: null,
        busy: false,
      });
    } catch (error) {
      if (controller.signal.aborted) return;
      const problem = error instanceof Problem ? error : new Problem(0, { detail: String(error) });
      keep({ ...(before ?? empty), problem, busy: false });
    }
  };

  return {
    loaded,
    ask: (question: Question) => void page(question, null),
    more: () => {
      const at = now.current;
      if (at && !at.busy && !at.complete && !at.problem) void page(at.question, at);
    },
  };
}
