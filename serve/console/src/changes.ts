// What changes in the store, as it happens: server-sent events, read by fetch, since only a fetch can send the header
// of the session. After a break it goes on behind the last event.
import { useEffect, useState } from "preact/hooks";
import { Problem, stream } from "./api";

export interface Change {
  event: string;
  id: number | null;
}

export type Link = "off" | "connecting" | "live" | "waiting";

/** Splits a stream into events; only what the console needs of them is kept. */
export class EventReader {
  #rest = "";
  #event = "";
  #id: number | null = null;
  #some = false;

  take(text: string): Change[] {
    const out: Change[] = [];
    // A carriage return at the end may be the first half of one end of a line.
    const all = this.#rest + text;
    const whole = all.endsWith("\r") ? all.slice(0, -1) : all;
    const lines = whole.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + all.slice(whole.length);
    for (const line of lines) {
      if (line === "") {
        if (this.#some) out.push({ event: this.#event || "message", id: this.#id });
        this.#event = "";
        this.#some = false;
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.#event = value;
      if (field === "data") this.#some = true;
      if (field === "id" && /^\d+$/.test(value)) this.#id = Number(value);
    }
    return out;
  }
}

const LONGEST_WAIT = 30_000;

/** Follows the changes behind `after`, while it is not null, and calls for each group that arrives. */
export function useChanges(after: number | null, changed: (changes: Change[]) => void): Link {
  const [link, setLink] = useState<Link>("off");
  useEffect(() => {
    if (after === null) {
      setLink("off");
      return;
    }
    const controller = new AbortController();
    let last = after;
    const follow = async () => {
      let wait = 1000;
      while (!controller.signal.aborted) {
        setLink("connecting");
        try {
          const response = await stream("/v1/changes", { after: last }, controller.signal);
          const body = response.body?.pipeThrough(new TextDecoderStream()).getReader();
          if (!body) return;
          setLink("live");
          const events = new EventReader();
          for (;;) {
            const { done, value } = await body.read();
            if (done) break;
            wait = 1000;
            const changes = events.take(value);
            last = Math.max(last, ...changes.map((change) => change.id ?? -1));
            if (changes.length > 0) changed(changes);
          }
        } catch (error) {
          if (controller.signal.aborted) return;
          if (error instanceof Problem && [401, 403, 404, 410].includes(error.status)) {
            setLink("off");
            return;
          }
        }
        setLink("waiting");
        await new Promise((resolve) => setTimeout(resolve, wait));
        wait = Math.min(wait * 2, LONGEST_WAIT);
      }
    };
    void follow();
    return () => controller.abort();
  }, [after]);
  return link;
}
