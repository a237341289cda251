// The audit log by pages, newest first, and whether its chain holds. What is new comes in by itself.
import { useEffect, useState } from "preact/hooks";
import { post } from "../api";
import { useAsk } from "../asked";
import { useChanges } from "../changes";
import { useKept } from "../kept";
import { type Filter, type Page, pageOf } from "../parts/auditlog";
import { AuditTable } from "../parts/audittable";
import { Heading } from "../parts/heading";
import { Empty, Failure, Loading } from "../parts/notice";
import { Text, Time } from "../text";
import type { Access } from "../types";
import { count, plural, save } from "../words";

const OPERATIONS = [
  "put", "supersede", "contradict", "set_verification", "hold", "lift_hold", "erase", "erase_user", "erase_consent",
  "import", "export", "cal", "read", "checkpoint", "preset_changed", "cal_switch", "read_log", "create",
];
const LINKS = { off: "", connecting: "connecting …", live: "live", waiting: "connection lost, trying again …" };

export function Audit({ access }: { access: Access }) {
  const [filter, setFilter] = useKept<Filter>("audit-filter", { reads: false, by: "", actor: "", operation: "", decision: "" });
  const [by, setBy] = useState(filter.by || filter.actor);
  const [tops, setTops] = useKept<(number | null)[]>("audit-tops", [null]);
  const [asked, ask] = useAsk<Page>();
  const [fresh, setFresh] = useState(0);
  const [follow, setFollow] = useState(true);
  const top = tops[tops.length - 1] ?? null;
  const newest = top === null;

  const load = () => {
    setFresh(0);
    void ask((signal) => pageOf(filter, top, signal));
  };
  useEffect(load, [filter, top]);

  const page = asked.answer;
  const [start, setStart] = useState<number | null>(null);
  useEffect(() => {
    if (start === null && page?.head && !filter.reads) setStart(page.head.sequence);
  }, [page]);
  const link = useChanges(follow && !filter.reads ? start : null, (changes) => setFresh((n) => n + changes.length));
  // New entries come in on the newest page at once; on an older one they are only counted.
  useEffect(() => {
    if (fresh > 0 && newest && !asked.busy) {
      const soon = setTimeout(load, 150);
      return () => clearTimeout(soon);
    }
    return undefined;
  }, [fresh, newest, asked.busy]);

  const narrow = (next: Partial<Filter>) => {
    setTops([null]);
    setFilter({ ...filter, ...next });
  };
  const byActor = (text: string) => {
    const name = text.trim();
    setBy(name);
    narrow(name.startsWith("did:") ? { by: name, actor: "" } : { by: "", actor: name });
  };
  const narrowed = filter.actor !== "" || filter.by !== "" || filter.operation !== "" || filter.decision !== "";
  return (
    <section class="page wide">
      <Heading title="Audit">
        <div class="tabs" role="group" aria-label="Which log">
          <button type="button" aria-pressed={!filter.reads} onClick={() => narrow({ reads: false, operation: "" })}>Changes</button>
          <button type="button" aria-pressed={filter.reads} onClick={() => narrow({ reads: true, operation: "" })}>Reads</button>
        </div>
      </Heading>
      {access.operator && <Chain head={page?.head ?? null} />}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          byActor(by);
        }}
      >
        <div class="field">
          <label for="a-decision">Decision</label>
          <select id="a-decision" value={filter.decision} onChange={(event) => narrow({ decision: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="done">done</option>
            <option value="refused">refused</option>
          </select>
        </div>
        <div class="field">
          <label for="a-operation">Operation</label>
          <select id="a-operation" value={filter.operation} onChange={(event) => narrow({ operation: event.currentTarget.value })}>
            <option value="">all</option>
            {OPERATIONS.map((operation) => <option value={operation}>{operation}</option>)}
          </select>
        </div>
        <div class="field grows">
          <label for="a-by">Actor</label>
          <input id="a-by" value={by} spellcheck={false} autocomplete="off" placeholder="a DID, or a name in the log" onInput={(event) => setBy(event.currentTarget.value)} />
        </div>
        <div class="buttons"><button type="submit">Filter</button></div>
        {!filter.reads && (
          <label class="check">
            <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.currentTarget.checked)} />
            follow
          </label>
        )}
        <span class="dim" role="status" data-link={link}>{LINKS[link]}</span>
      </form>
      {asked.problem && <Failure problem={asked.problem} again={load} />}
      {asked.busy && !page && <Loading what="the log" />}
      {page && page.entries.length > 0 && <AuditTable entries={page.entries} by={byActor} />}
      {page && page.entries.length === 0 && (
        <Empty><p>{narrowed ? "No entry here fits the filter." : "There is no entry that you may see."}</p></Empty>
      )}
      {page?.head && (
        <div class="pager">
          <button type="button" disabled={newest} onClick={() => setTops(tops.slice(0, -1))}>Newer</button>
          <span class="dim num">{count(page.to)} to {count(page.from)} of {count(page.head.sequence)}</span>
          <button type="button" disabled={page.to <= 0} onClick={() => setTops([...tops, page.to - 1])}>Older</button>
          {!newest && <button type="button" onClick={() => setTops([null])}>Newest{fresh > 0 ? `, ${plural(fresh, "new entry", "new entries")}` : ""}</button>}
        </div>
      )}
    </section>
  );
}

interface Verdict {
  ok: boolean;
  full: boolean;
  problems: { what: string; where?: string; detail?: string }[];
  problem_count: number;
  checked?: { [what: string]: number };
}

function Chain({ head }: { head: { sequence: number; hash: string } | null }) {
  const [kept, keep] = useKept<{ verdict: Verdict; at: number } | null>("audit-verdict", null);
  const [asked, ask] = useAsk<Verdict>();
  const [checkpoint, askCheckpoint] = useAsk<object>();
  const check = (full: boolean) =>
    void ask((signal) => post<Verdict>("/v1/verify", { full }, signal)).then((verdict) => verdict && keep({ verdict, at: Date.now() }));
  const verdict = kept?.verdict;
  return (
    <section class="panel chain" aria-label="The chain">
      <div class="row-of">
        {!verdict && !asked.busy && <span class="mark">not checked yet</span>}
        {asked.busy && <span role="status" class="dim">Checking the store and its chain …</span>}
        {verdict && !asked.busy && (
          <span role="status">
            <span class={verdict.ok ? "mark good" : "mark bad"}>{verdict.ok ? "sound" : "not sound"}</span>{" "}
            {verdict.ok ? "The chain holds" : `${plural(verdict.problem_count, "problem")} found`}
            {verdict.checked?.audit_entries !== undefined && `, ${count(verdict.checked.audit_entries)} entries checked`}
            {verdict.checked?.reads !== undefined && `, ${plural(verdict.checked.reads, "read")}`}
            {kept && <span class="dim"> at <Time ms={kept.at} /> UTC</span>}
          </span>
        )}
        <button type="button" class="small" disabled={asked.busy} onClick={() => check(false)}>Check the chain</button>
        <button type="button" class="small" disabled={asked.busy} onClick={() => check(true)}>Check everything</button>
        <button
          type="button"
          class="small"
          disabled={checkpoint.busy}
          onClick={() =>
            void askCheckpoint((signal) => post<object>("/v1/checkpoint", {}, signal)).then(
              (answer) => answer && save("checkpoint.json", JSON.stringify(answer, null, 2), "application/json"),
            )}
        >
          Save a checkpoint
        </button>
      </div>
      {head && <p class="dim small-text">Entry {count(head.sequence)}, head <code class="wrap">{head.hash}</code></p>}
      {asked.problem && <Failure problem={asked.problem} />}
      {checkpoint.problem && <Failure problem={checkpoint.problem} />}
      {verdict && verdict.problems.length > 0 && (
        <ul>
          {verdict.problems.map((problem) => (
            <li><Text of={problem.what} /> {problem.where && <code><Text of={problem.where} /></code>} {problem.detail && <Text of={problem.detail} />}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
