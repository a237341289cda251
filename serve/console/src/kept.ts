// What a page remembers while another one is shown: filters, a query, the place in a list. In memory only.
import { useCallback, useState } from "preact/hooks";

const kept = new Map<string, unknown>();

export function useKept<T>(name: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => (kept.has(name) ? (kept.get(name) as T) : initial));
  const keep = useCallback(
    (next: T) => {
      kept.set(name, next);
      setValue(() => next);
    },
    [name],
  );
  return [value, keep];
}

/** The same without drawing anew, for values that change as one scrolls. */
export const remember = (name: string, value: unknown): void => void kept.set(name, value);
export const recalled = <T>(name: string, initial: T): T => (kept.has(name) ? (kept.get(name) as T) : initial);

/** After a sign-out nothing of the former session may be left. */
export const forgetAll = (): void => kept.clear();
