// Asking in CAL: a list for grains, text or JSON for anything else. A statement that writes is shown before it runs.
import { useState } from "preact/hooks";
import { post } from "../api";
import { useAsk } from "../asked";
import { remember, useKept } from "../kept";
import { Address, Block, Text } from "../text";
import type { Access, CalAnswer, Found, Json, Prepared } from "../types";
import { count, plural } from "../words";
import { CalBox } from "./calbox";
import { CalError } from "./calerror";
import { Dialog } from "./dialog";
import { List, rowOf } from "./list";
import { Empty, Loading } from "./notice";
import { Value } from "./value";

/** Whether a statement, or what its LETs lead to, is one that writes. */
export function writes(statement: string): boolean {
  const bare = statement.replace(/"(?:[^"\\]|\\[\s\S])*"?|--[^\n]*/g, " ");
  return /(?:^|;)\s*(?:ADD|SUPERSEDE|REVERT)\b/i.test(bare);
}

const EXAMPLES = [
  "RECALL beliefs RECENT 20",
  'RECALL LIKE "what was promised"',
  "RECALL beliefs | GROUP BY relation",
  "DESCRIBE goal",
];

export function CalAsk({ access }: { access: Access }) {
  const [query, setQuery] = useKept("cal-query", "");
  const [asked, setAsked] = useKept("cal-asked", "");
  const [kept, keep] = useKept<CalAnswer | null>("cal-answer", null);
  const [state, ask] = useAsk<CalAnswer>();
  const [prepared, setPrepared] = useState<Prepared | null>(null);
  const [round, setRound] = useState(0);

  const answered = (answer: CalAnswer | null) => {
    remember("cal-list-top", 0);
    remember("cal-list-at", 0);
    setRound((n) => n + 1);
    keep(answer);
  };
  const run = async (text = query) => {
    if (text.trim() === "") return;
    setQuery(text);
    setAsked(text);
    const statement = text.replace(/;\s*$/, "");
    if (access.tier === 1 && writes(statement)) {
      answered(await ask(async (signal) => {
        setPrepared(await post<Prepared>("/v1/cal/prepare", { query: statement, tier: 1 }, signal));
        return null as unknown as CalAnswer;
      }));
    } else {
      answered(await ask((signal) => post<CalAnswer>("/v1/cal", { query: statement }, signal)));
    }
  };
  const execute = async () => {
    const token = prepared?.token;
    setPrepared(null);
    if (token) answered(await ask((signal) => post<CalAnswer>("/v1/cal/execute", { token }, signal)));
  };

  const answer = state.problem || state.busy ? null : kept;
  return (
    <>
      <div class="calform">
        <CalBox value={query} change={setQuery} run={() => void run()} broken={state.problem !== null && asked === query} />
        <button type="button" class="first" disabled={query.trim() === "" || state.busy} onClick={() => void run()}>Run</button>
      </div>
      {state.problem && <CalError problem={state.problem} query={asked.replace(/;\s*$/, "")} use={(text) => void run(text)} />}
      {state.busy && <Loading what="the answer" />}
      {answer && <Answer answer={answer} round={round} />}
      {!answer && !state.busy && !state.problem && (
        <Empty>
          <p>CAL asks a memory. Begin with one of these:</p>
          <ul class="examples">
            {EXAMPLES.map((example) => (
              <li><button type="button" class="example" onClick={() => void run(example)}>{example}</button></li>
            ))}
          </ul>
        </Empty>
      )}
      {prepared && (
        <Dialog title="This statement writes" close={() => setPrepared(null)}>
          <ul>{prepared.side_effects.map((effect) => <li><Text of={effect} /></li>)}</ul>
          {prepared.target && <p>It replaces <Address of={prepared.target} />.</p>}
          {(prepared.changes ?? []).length > 0 && (
            <table>
              <thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead>
              <tbody>
                {prepared.changes?.map((change) => (
                  <tr>
                    <td><Text of={change.field} /></td>
                    <td><Value of={change.from} name={change.field} /></td>
                    <td><Value of={change.to} name={change.field} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <div class="buttons">
            <button type="button" class="first" onClick={() => void execute()}>Write it</button>
            <button type="button" onClick={() => setPrepared(null)}>Leave it</button>
          </div>
        </Dialog>
      )}
    </>
  );
}

type Shaped = { values: Json[] } | { groups: { key: Json; count: number }[] } | { count: number };

/** Answers that read better than as JSON. */
function shapeOf(answer: CalAnswer): Shaped | null {
  if (Array.isArray(answer.values)) return { values: answer.values as Json[] };
  if (Array.isArray(answer.groups)) return { groups: answer.groups as { key: Json; count: number }[] };
  return typeof answer.count === "number" ? { count: answer.count } : null;
}

function Shape({ of }: { of: Shaped }) {
  if ("count" in of) return <dl class="figures"><div><dt>count</dt><dd>{count(of.count)}</dd></div></dl>;
  const head = "groups" in of ? <tr><th scope="col">Value</th><th scope="col">Grains</th></tr> : <tr><th scope="col">Value</th></tr>;
  const rows = "groups" in of
    ? of.groups.map((group) => <tr><td><Value of={group.key} /></td><td class="num">{count(group.count)}</td></tr>)
    : of.values.map((value) => <tr><td><Value of={value} /></td></tr>);
  return (
    <div class="scroll-x tall" tabIndex={0} role="region" aria-label="Answer">
      <table><thead>{head}</thead><tbody>{rows}</tbody></table>
    </div>
  );
}

const whole = (found: Found[]): boolean => found.every((one) => typeof one.grain?.type === "string" && one.content_address);

function Answer({ answer, round }: { answer: CalAnswer; round: number }) {
  const { _cal: about, results } = answer;
  const warnings = about.warnings ?? [];
  const text = answer.formatted_context?.text ?? answer.formatted;
  const listed = text === undefined && results !== undefined && whole(results);
  const { _cal: _, ...rest } = answer;
  const shape = listed || text !== undefined ? null : shapeOf(answer);
  return (
    <>
      <p class="count dim" role="status">
        {results ? plural(results.length, "grain") : about.statement_type}
        {typeof answer.total === "number" && results && answer.total > results.length && ` of ${answer.total}`}
        {`, ${about.duration_ms} ms`}
        {answer.formatted_context && `, ${plural(answer.formatted_context.tokens, "token")}`}
      </p>
      {warnings.map((warning) => <p class="notice warn"><Value of={warning} /></p>)}
      {listed && results.length > 0 && (
        <List key={round} name="cal-list" label="Grains" rows={results.map((found) => rowOf(found, found.score !== 1))} complete more={() => undefined} />
      )}
      {listed && results.length === 0 && <Empty><p>Nothing fits this statement.</p></Empty>}
      {text !== undefined && <Block of={text} label="Text of the answer" />}
      {shape && <Shape of={shape} />}
      {!listed && text === undefined && !shape && <Block of={JSON.stringify(rest, null, 2)} label="Answer as JSON" />}
    </>
  );
}
