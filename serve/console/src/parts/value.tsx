// A value of a grain as it is stored, with addresses as links.
import { Address, Text, Time } from "../text";
import type { Json } from "../types";
import { count, isAddress } from "../words";

const TIMES = /(^|_)(at|from|to|until|ms|time)$/;
const DEEPEST = 12;
const LONGEST = 500;

export function Value({ of, name = "", depth = 0 }: { of: Json | undefined; name?: string; depth?: number }) {
  if (of === null || of === undefined) return <span class="dim">none</span>;
  if (typeof of === "string") return isAddress(of) ? <Address of={of} /> : <span class="wrap"><Text of={of} /></span>;
  if (typeof of === "number") {
    return TIMES.test(name) && of > 1e11 && of < 1e14
      ? <span><Time ms={of} /> <span class="dim num">{of}</span></span>
      : <span class="num">{of}</span>;
  }
  if (typeof of === "boolean") return <span>{of ? "yes" : "no"}</span>;
  if (depth > DEEPEST) return <span class="wrap"><Text of={JSON.stringify(of)} /></span>;
  if (Array.isArray(of)) {
    if (of.length === 0) return <span class="dim">empty list</span>;
    return (
      <ul class="values">
        {of.slice(0, LONGEST).map((item) => <li><Value of={item} name={name} depth={depth + 1} /></li>)}
        {of.length > LONGEST && <li class="dim">and {count(of.length - LONGEST)} more</li>}
      </ul>
    );
  }
  return <Fields of={of} depth={depth + 1} />;
}

export function Fields({ of, depth = 0 }: { of: { [name: string]: Json | undefined }; depth?: number }) {
  const all = Object.keys(of);
  const names = all.slice(0, LONGEST);
  if (names.length === 0) return <span class="dim">nothing</span>;
  return (
    <dl class={depth > 0 ? "fields inner" : "fields"}>
      {names.map((name) => (
        <div>
          <dt><Text of={name} /></dt>
          <dd><Value of={of[name]} name={name} depth={depth} /></dd>
        </div>
      ))}
      {all.length > names.length && <div class="dim">and {count(all.length - names.length)} more</div>}
    </dl>
  );
}
