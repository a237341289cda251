// An answer on its way: loading, there, or failed. A newer question cancels the older one.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";

export interface Asked<T> {
  answer: T | null;
  problem: Problem | null;
  busy: boolean;
}

const failureOf = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(0, { code: "UNEXPECTED", detail: String(error) });

/** A question that is asked on demand. */
export function useAsk<T>(): [
  Asked<T>,
  (question: (signal: AbortSignal) => Promise<T>) => Promise<T | null>,
  (answer: T | null) => void,
] {
  const [asked, setAsked] = useState<Asked<T>>({ answer: null, problem: null, busy: false });
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const ask = useCallback(async (question: (signal: AbortSignal) => Promise<T>) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setAsked((before) => ({ ...before, problem: null, busy: true }));
    try {
      const answer = await question(controller.signal);
      if (controller.signal.aborted) return null;
      setAsked({ answer, problem: null, busy: false });
      return answer;
    } catch (error) {
      if (controller.signal.aborted) return null;
      setAsked({ answer: null, problem: failureOf(error), busy: false });
      return null;
    }
  }, []);

  const put = useCallback((answer: T | null) => {
    running.current?.abort();
    setAsked({ answer, problem: null, busy: false });
  }, []);
  return [asked, ask, put];
}

/** A question that is asked at once, and again whenever what it depends on changes. */
export function useAnswer<T>(
  question: (signal: AbortSignal) => Promise<T>,
  dependencies: unknown[],
): Asked<T> & { again: () => void } {
  const [asked, ask] = useAsk<T>();
  const [round, setRound] = useState(0);
  useEffect(() => void ask(question), [...dependencies, round]);
  return { ...asked, again: () => setRound((n) => n + 1) };
}
