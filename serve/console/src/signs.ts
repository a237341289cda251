// Signs that do not show themselves: controls, marks of direction, joiners, private ones, fillers, lone surrogates.
// The selector and the joiner within an emoji are left as they are.
const HIDDEN =
  /(?!(?<=\p{Emoji})\ufe0f)(?!(?<=[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d\p{Extended_Pictographic})[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]/gu;

/** More than this many are not told one by one: a page of nothing else must not stop the browser. */
const MOST = 1000;

export interface Piece {
  text: string;
  /** How often a hidden sign stands here in a row; 0 for text. */
  times: number;
}

const spelled = (sign: string): string => {
  const code = sign.codePointAt(0) ?? 0;
  if (code === 0x0a) return "\\n";
  if (code === 0x09) return "\\t";
  if (code === 0x0d) return "\\r";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
};

/** A text in pieces, hidden signs spelled out. In a block line feeds and tabs are text. */
export function piecesOf(text: string, block: boolean): Piece[] {
  const out: Piece[] = [];
  let last = 0;
  let signs = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const sign = match[0];
    if (block && (sign === "\n" || sign === "\t")) continue;
    if (signs >= MOST) {
      let more = 0;
      const rest = text.slice(last).replace(HIDDEN, (one) => {
        if (block && (one === "\n" || one === "\t")) return one;
        more += 1;
        return "";
      });
      out.push({ text: `and ${more} more that do not show, left out of the rest`, times: 1 }, { text: rest, times: 0 });
      return out;
    }
    const before = out[out.length - 1];
    if (match.index > last) out.push({ text: text.slice(last, match.index), times: 0 });
    else if (before && before.times > 0 && before.text === spelled(sign)) {
      before.times += 1;
      last = match.index + sign.length;
      continue;
    }
    out.push({ text: spelled(sign), times: 1 });
    signs += 1;
    last = match.index + sign.length;
  }
  if (last < text.length) out.push({ text: text.slice(last), times: 0 });
  return out;
}

export const hasHidden = (text: string): boolean => text.search(HIDDEN) >= 0;

/** JSON in which hidden signs are escaped, so that a box to edit it shows them. */
export const visibleJson = (json: string): string =>
  json.replace(HIDDEN, (sign) =>
    sign === "\n" ? sign : [...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
