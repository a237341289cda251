// A recall, replayed: a question and a budget, the candidates with their scores, and the text a model would read.
import { post } from "../api";
import { useAsk } from "../asked";
import { grainsOf } from "../fetched";
import { useKept } from "../kept";
import { CalError } from "../parts/calerror";
import { Bar } from "../parts/charts";
import { Heading } from "../parts/heading";
import { Empty, Loading } from "../parts/notice";
import { Address, Block, Copy, Kind, Text } from "../text";
import type { CalAnswer, Candidate, Grain, SourceOutcome } from "../types";
import { count, literal, plural, said } from "../words";

interface Replayed {
  statement: string;
  budget: number;
  answer: CalAnswer;
  grains: Map<string, Grain>;
}

const MOST = 50;

export const statementOf = (question: string, budget: number): string =>
  `ASSEMBLE FOR ${literal(question)} FROM found: (RECALL WHERE query = ${literal(question)} LIMIT ${MOST}) ` +
  `BUDGET ${budget} tokens WITH score_breakdown, explanation`;

async function replay(question: string, budget: number, signal: AbortSignal): Promise<Replayed> {
  const statement = statementOf(question, budget);
  const answer = await post<CalAnswer>("/v1/cal", { query: statement }, signal);
  const addresses = (answer.sources?.found?.grains ?? []).map((one) => one.content_address);
  return { statement, budget, answer, grains: await grainsOf(addresses, signal) };
}

export function Replay() {
  const [question, setQuestion] = useKept("replay-question", "");
  const [budget, setBudget] = useKept("replay-budget", "300");
  const [kept, keep] = useKept<Replayed | null>("replay-answer", null);
  const [asked, ask] = useAsk<Replayed>();
  const tokens = Number(budget);
  const fits = Number.isInteger(tokens) && tokens >= 1 && question.trim() !== "";
  const shown = asked.busy || asked.problem ? null : kept;
  return (
    <section class="page wide">
      <Heading title="Recall replay" />
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          if (fits) void ask((signal) => replay(question, tokens, signal)).then((answer) => answer && keep(answer));
        }}
      >
        <div class="field grows">
          <label for="question">Question</label>
          <input id="question" value={question} autocomplete="off" placeholder="what an agent would ask" onInput={(event) => setQuestion(event.currentTarget.value)} />
        </div>
        <div class="field narrow">
          <label for="budget">Budget in tokens</label>
          <input id="budget" type="number" min={1} max={1000000} value={budget} onInput={(event) => setBudget(event.currentTarget.value)} />
        </div>
        <div class="buttons"><button type="submit" class="first" disabled={!fits || asked.busy}>Replay</button></div>
      </form>
      {asked.busy && <Loading what="the recall" />}
      {asked.problem && <CalError problem={asked.problem} query={statementOf(question, tokens)} />}
      {shown && <Outcome of={shown} />}
      {!shown && !asked.busy && !asked.problem && (
        <Empty><p>Ask what an agent would ask. You see which grains were looked at, how each was scored, and which of them the budget had room for.</p></Empty>
      )}
    </section>
  );
}

function Outcome({ of }: { of: Replayed }) {
  const { answer, budget, grains } = of;
  const found = answer.sources?.found;
  const context = answer.formatted_context;
  const candidates = found?.grains ?? [];
  const signals = [...new Set(candidates.flatMap((one) => Object.keys(one.score_breakdown ?? {})))].sort();
  const shown = candidates.filter((one) => one.shown).length;
  return (
    <div class="columns replay">
      <div>
        <h2>Candidates</h2>
        <p class="dim" role="status">
          {plural(candidates.length, "grain")} found, {shown} of them in the text, {candidates.length - shown} left out.
          {candidates.length === MOST && ` Only the best ${MOST} were asked for.`}
        </p>
        {candidates.length === 0 ? <Empty><p>No grain fits this question.</p></Empty> : (
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Candidates">
            <table class="candidates">
              <thead>
                <tr>
                  <th scope="col">#</th><th scope="col">Grain</th><th scope="col">Score</th>
                  {signals.map((signal) => <th scope="col"><Text of={signal} /></th>)}
                  <th scope="col">In or out, and why</th>
                </tr>
              </thead>
              <tbody>
                {candidates.map((one, index) => (
                  <Line key={one.content_address} one={one} rank={index + 1} grain={grains.get(one.content_address)} signals={signals} source={found as SourceOutcome} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
      <div>
        <h2>What the model reads</h2>
        {context && (
          <>
            <p><Bar value={context.tokens / budget} tone="two" text={`${count(context.tokens)} of ${count(budget)} tokens`} /></p>
            <Block of={context.text} label="Text for the model, as SML" />
          </>
        )}
        {found && (
          <p class="dim">
            The source was given {count(found.allocated)} tokens and used {count(found.used)}: {found.full} in full,{" "}
            {found.standard} in standard form, {found.summary} in summary, {found.omitted} left out.
          </p>
        )}
        <details>
          <summary>The statement</summary>
          <Block of={of.statement} label="Statement of CAL" />
          <Copy text={of.statement} what="the statement" />
        </details>
      </div>
    </div>
  );
}

function whyOut(source: SourceOutcome): string {
  const left = source.allocated - source.used;
  return left > 0 ? `No room: ${plural(left, "token")} left of ${count(source.allocated)}.` : `No room: all ${count(source.allocated)} tokens used.`;
}

interface LineProps {
  one: Candidate;
  rank: number;
  grain: Grain | undefined;
  signals: string[];
  source: SourceOutcome;
}

function Line({ one, rank, grain, signals, source }: LineProps) {
  const { about, says } = grain ? said(grain) : { about: "", says: "" };
  return (
    <tr class={one.shown ? "in" : "out"}>
      <td class="num">{rank}</td>
      <td>
        <Address of={one.content_address} /> {grain && <Kind of={grain.type} />}
        <br />
        <Text of={`${about} ${says}`.trim()} max={120} />
      </td>
      <td><Bar value={one.score} /></td>
      {signals.map((signal) => {
        const value = one.score_breakdown?.[signal];
        return <td>{value === undefined ? <span class="dim">none</span> : <Bar value={value} tone="two" />}</td>;
      })}
      <td>
        <span class={one.shown ? "mark good" : "mark"}>{one.shown ? "in" : "out"}</span>{" "}
        {one.explanation && <Text of={`${one.explanation.charAt(0).toUpperCase()}${one.explanation.slice(1)}.`} />}
        {!one.shown && <> {whyOut(source)}</>}
      </td>
    </tr>
  );
}
