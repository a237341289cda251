// Text out of the store, which may hold anything: it is only ever a text node, each piece in an element that isolates
// its direction, and signs without a shape of their own are written out where they stand.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { href } from "./router";
import { piecesOf } from "./signs";
import { isAddress, utc } from "./words";

const shown = (text: string, block: boolean): ComponentChildren[] =>
  piecesOf(text, block).map(({ text: piece, times }) =>
    times === 0 ? piece : <span class="sign" title="a sign that does not show itself">{piece}{times > 1 && ` ×${times}`}</span>);

/** Stored text in a line. `max` cuts what would only be hidden behind the edge anyway. */
export function Text({ of, max }: { of: string; max?: number }) {
  const cut = max !== undefined && of.length > max;
  return <bdi>{shown(cut ? of.slice(0, max) : of, false)}{cut ? "…" : ""}</bdi>;
}

/** Stored text of many lines. */
export function Block({ of, label }: { of: string; label: string }) {
  return <pre class="block" tabIndex={0} role="region" aria-label={label}><bdi>{shown(of, true)}</bdi></pre>;
}

export function Time({ ms, seconds = true }: { ms: number; seconds?: boolean }) {
  const date = new Date(ms);
  const iso = Number.isFinite(date.getTime()) ? date.toISOString() : undefined;
  return <time dateTime={iso} title={iso} class="num">{utc(ms, seconds)}</time>;
}

/** A link to a grain by the beginning of its address. */
export function Address({ of, page = "grain" }: { of: string; page?: string }) {
  const bare = of.replace(/^sha256:/, "");
  if (!isAddress(bare)) return <Text of={of} max={80} />;
  return <a class="address" href={href(page, bare)} title={bare}>{bare.slice(0, 12)}…</a>;
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [told, setTold] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setTold("copied");
    } catch {
      setTold("the browser did not let it be copied");
    }
    setTimeout(() => setTold(""), 2000);
  };
  return (
    <span class="copy">
      <button type="button" class="small" onClick={copy} aria-label={`Copy ${what}`}>Copy</button>
      <span role="status" class="dim">{told}</span>
    </span>
  );
}

export const Kind = ({ of }: { of: string | undefined }) => (
  <span class="kind" data-type={of ?? "other"}><Text of={of ?? "unnamed"} max={24} /></span>
);
