// A list of grains of any length: only the rows in sight are in the page, and more are asked for before the end is
// reached. One element has the focus; the arrows move a mark within it (the listbox pattern of ARIA).
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { recalled, remember } from "../kept";
import { go, href } from "../router";
import { Kind, Text, Time } from "../text";
import type { Found } from "../types";
import { said, tagsOf, timeOf } from "../words";

/** What a row shows. Whole grains of 100,000 rows would not fit into the memory of a page. */
export interface Row {
  address: string;
  type: string | undefined;
  about: string;
  says: string;
  time: number | null;
  score: number | null;
  locked: boolean;
  mark: string;
}

const LONGEST = 240;
const cut = (text: string): string => (text.length > LONGEST ? text.slice(0, LONGEST) : text);

export function rowOf(found: Found, scored: boolean): Row {
  const { about, says } = said(found.grain);
  return {
    address: found.content_address,
    type: found.grain.type,
    about: cut(about),
    says: cut(says),
    time: timeOf(found.grain),
    score: scored ? found.score : null,
    locked: tagsOf(found.grain).includes("mg:protected") || found.grain.invalidation_policy !== undefined,
    mark: found.state?.superseded_by ? "superseded" : found.state?.contradicted ? "contradicted" : "",
  };
}

const ROW = 34;
const BEYOND = 8;

interface ListProps {
  name: string;
  label: string;
  rows: Row[];
  complete: boolean;
  more: () => void;
}

export function List({ name, label, rows, complete, more }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(() => recalled(`${name}-top`, 0));
  const [height, setHeight] = useState(600);
  const [at, setAt] = useState(() => recalled(`${name}-at`, 0));

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.scrollTop = top;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + BEYOND);
  useEffect(() => {
    if (!complete && last + 100 > rows.length) more();
  }, [last, rows.length, complete]);

  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setAt(next);
    remember(`${name}-at`, next);
    const element = box.current;
    if (!element) return;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    if ((next + 1) * ROW > element.scrollTop + element.clientHeight) {
      element.scrollTop = (next + 1) * ROW - element.clientHeight;
    }
  };
  const open = (index: number, elsewhere = false) => {
    const row = rows[index];
    if (!row) return;
    if (elsewhere) {
      window.open(href("grain", row.address), "_blank", "noopener");
      return;
    }
    remember(`${name}-at`, index);
    go("grain", row.address);
  };
  const page = Math.max(1, Math.floor(height / ROW) - 1);
  const key = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const to: { [key: string]: number } = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1,
      PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1,
    };
    const target = to[event.key];
    if (target !== undefined) move(target);
    else if (event.key === "Enter" || event.key === " ") open(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const shown = [];
  for (let index = first; index < last; index += 1) {
    const row = rows[index];
    if (row) shown.push(<Line key={row.address} row={row} index={index} here={index === at} of={complete ? rows.length : -1} name={name} open={open} />);
  }
  const marked = at >= first && at < last;
  return (
    <div
      ref={box}
      class="list"
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={marked ? `${name}-${at}` : undefined}
      onKeyDown={key}
      onScroll={(event) => {
        setTop(event.currentTarget.scrollTop);
        remember(`${name}-top`, event.currentTarget.scrollTop);
      }}
    >
      <div class="list-room" role="presentation" style={{ height: `${rows.length * ROW}px` }}>
        <div class="list-window" role="presentation" style={{ transform: `translateY(${first * ROW}px)` }}>{shown}</div>
      </div>
    </div>
  );
}

interface LineProps {
  row: Row;
  index: number;
  here: boolean;
  of: number;
  name: string;
  open: (index: number, elsewhere: boolean) => void;
}

function Line({ row, index, here, of, name, open }: LineProps) {
  return (
    <div
      id={`${name}-${index}`}
      class={here ? "row here" : "row"}
      role="option"
      aria-selected={here}
      aria-posinset={index + 1}
      aria-setsize={of}
      onClick={(event) => open(index, event.ctrlKey || event.metaKey)}
    >
      <Kind of={row.type} />
      <span class="row-about"><Text of={row.about} /></span>
      <span class="row-says"><Text of={row.says} /></span>
      <span class="row-marks">
        {row.locked && <span class="mark warn">policy</span>}
        {row.mark && <span class="mark">{row.mark}</span>}
        {row.score !== null && <span class="num dim">{row.score.toFixed(3)}</span>}
      </span>
      <span class="row-time dim">{row.time !== null && <Time ms={row.time} seconds={false} />}</span>
    </div>
  );
}
