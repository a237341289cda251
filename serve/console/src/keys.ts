// Keys for the whole console. Single letters can be switched off, for those whom they hinder (WCAG 2.1.4).
import { useEffect, useRef } from "preact/hooks";

export interface Shortcut {
  keys: string;
  does: string;
  run?: () => void;
}

const WAIT = 1200;

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);

/** Keys of a list, pressed where no other part has them, are the list's. */
const toList = (event: KeyboardEvent): void => {
  const list = document.querySelector<HTMLElement>(".list");
  const idle = event.target === document.body || (event.target instanceof HTMLElement && event.target.matches("main, h1"));
  if (!list || !idle || !["ArrowDown", "ArrowUp", "j", "k"].includes(event.key)) return;
  event.preventDefault();
  list.focus({ preventScroll: true });
  list.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
};

/** Runs shortcuts such as `?` and `g f`, the latter as two keys one after the other. */
export function useShortcuts(shortcuts: Shortcut[], on: boolean): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    if (!on) return;
    let first = "";
    let at = 0;
    const key = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
      if (typing(event.target) || document.querySelector("dialog[open]")) return;
      const pair = first && event.timeStamp - at < WAIT ? `${first} ${event.key}` : "";
      const found = latest.current.find((one) => one.run && (one.keys === pair || (!pair && one.keys === event.key)));
      first = !found && latest.current.some((one) => one.keys.startsWith(`${event.key} `)) ? event.key : "";
      at = event.timeStamp;
      if (!found) {
        if (!pair) toList(event);
        return;
      }
      event.preventDefault();
      found.run?.();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [on]);
}
