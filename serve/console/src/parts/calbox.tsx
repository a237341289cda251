// The box for a statement of CAL. The server says what can stand at the cursor; arrows choose, Tab or Enter takes,
// Escape closes, Ctrl+Enter runs. ARIA lets a text of several lines be no combobox, so it is a text box that names
// its list, the open choice and how many there are.
import { useEffect, useRef, useState } from "preact/hooks";
import { Text } from "../text";
import { type Offer, wordsAt } from "./words";

interface CalBoxProps {
  value: string;
  change: (value: string) => void;
  run: () => void;
  broken: boolean;
}

const MOST = 60;

export function CalBox({ value, change, run, broken }: CalBoxProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [offer, setOffer] = useState<Offer | null>(null);
  const [at, setAt] = useState(0);
  const round = useRef(0);
  const list = useRef<HTMLUListElement>(null);
  const waiting = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at, offer]);
  const close = () => {
    round.current += 1;
    clearTimeout(waiting.current);
    setOffer(null);
  };
  const look = (wait: number) => {
    clearTimeout(waiting.current);
    const mine = ++round.current;
    waiting.current = setTimeout(async () => {
      const element = area.current;
      if (!element || element.selectionStart !== element.selectionEnd) return;
      try {
        const before = element.value.slice(0, element.selectionStart);
        const found = await wordsAt(before);
        if (mine !== round.current || document.activeElement !== element) return;
        setAt(0);
        setOffer(found.candidates.length > 0 ? { ...found, candidates: found.candidates.slice(0, MOST) } : null);
      } catch {
        setOffer(null); // Without an offer one goes on typing; the run will say what is wrong.
      }
    }, wait);
  };
  const take = (index: number) => {
    const element = area.current;
    const candidate = offer?.candidates[index];
    if (!element || !offer || !candidate) return;
    const end = element.selectionStart;
    const rest = value.slice(end);
    // What already stands behind the cursor is not written twice.
    const last = candidate.insert.slice(-1);
    const insert = [" ", '"'].includes(last) && rest.startsWith(last) ? candidate.insert.slice(0, -1) : candidate.insert;
    const next = value.slice(0, offer.start) + insert + rest;
    const caret = offer.start + insert.length;
    close();
    change(next);
    requestAnimationFrame(() => {
      element.focus();
      element.setSelectionRange(caret, caret);
    });
  };

  const key = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      run();
      return;
    }
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      look(0);
      return;
    }
    if (!offer) return;
    const size = offer.candidates.length;
    if (event.key === "ArrowDown") setAt((at + 1) % size);
    else if (event.key === "ArrowUp") setAt((at + size - 1) % size);
    else if ((event.key === "Tab" && !event.shiftKey) || event.key === "Enter") take(at);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="calbox">
      <label for="cal">Statement of CAL</label>
      <textarea
        id="cal"
        ref={area}
        rows={Math.min(10, Math.max(2, value.split("\n").length))}
        value={value}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder={'RECALL beliefs ABOUT "…" | LIMIT 20'}
        aria-describedby="cal-keys"
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={offer ? "cal-offer" : undefined}
        aria-activedescendant={offer ? `cal-offer-${at}` : undefined}
        aria-invalid={broken}
        onInput={(event) => {
          change(event.currentTarget.value);
          look(120);
        }}
        onKeyDown={key}
        onClick={close}
        onBlur={close}
      />
      {offer && (
        <ul id="cal-offer" ref={list} class="offer" role="listbox" aria-label="What can stand here">
          {offer.candidates.map((candidate, index) => (
            <li
              id={`cal-offer-${index}`}
              role="option"
              aria-selected={index === at}
              onMouseDown={(event) => {
                event.preventDefault();
                take(index);
              }}
            >
              <Text of={candidate.text} max={80} />
            </li>
          ))}
        </ul>
      )}
      <p id="cal-keys" class="dim small-text">
        <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs it, <kbd>Ctrl</kbd>+<kbd>Space</kbd> offers words, <kbd>Tab</kbd> takes one,{" "}
        <kbd>Esc</kbd> closes the list.
      </p>
      <p class="unseen" role="status">{offer ? `${offer.candidates.length} words can stand here` : ""}</p>
    </div>
  );
}
