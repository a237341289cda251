// Text out of the store, which may hold anything: it is only ever a text node, each piece in an element that isolates
// its direction, and signs without a shape of their own are written out where they stand.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { href } from "./router";
import { isAddress, utc } from "./words";

// Control, format and private signs, lone surrogates, fillers and separators that look like nothing. The selector and
// the joiner within an emoji stay as they are, and line feeds and tabs in blocks of text.
const HIDDEN =
  /(?!(?<=\p{Emoji})\ufe0f)(?!(?<=[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d\p{Extended_Pictographic})[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]/gu;

const spelled = (sign: string): string => {
  const code = sign.codePointAt(0) ?? 0;
  if (code === 0x0a) return "\\n";
  if (code === 0x09) return "\\t";
  if (code === 0x0d) return "\\r";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
};

function pieces(text: string, block: boolean): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let last = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const sign = match[0];
    if (block && (sign === "\n" || sign === "\t")) continue;
    if (match.index > last) out.push(text.slice(last, match.index));
    out.push(<span class="sign" title={`the character ${spelled(sign)}`}>{spelled(sign)}</span>);
    last = match.index + sign.length;
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}

/** Stored text in a line. `max` cuts what would only be hidden behind the edge anyway. */
export function Text({ of, max }: { of: string; max?: number }) {
  const cut = max !== undefined && of.length > max;
  return <bdi>{pieces(cut ? of.slice(0, max) : of, false)}{cut ? "…" : ""}</bdi>;
}

/** Stored text of many lines. */
export function Block({ of, label }: { of: string; label: string }) {
  return <pre class="block" tabIndex={0} role="region" aria-label={label}><bdi>{pieces(of, true)}</bdi></pre>;
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
