// The versions of a grain on a timeline, with a slider: what was believed then?
import { useMemo, useState } from "preact/hooks";
import { grainPath, read } from "../api";
import { useAnswer } from "../asked";
import { Heading } from "../parts/heading";
import { Empty, Failure, Loading } from "../parts/notice";
import { Value } from "../parts/value";
import { href } from "../router";
import { Address, Kind, Text, Time } from "../text";
import type { Version } from "../types";
import { count, knownFrom, plural, said, utc } from "../words";

interface Span {
  version: Version;
  from: number;
  to: number | null;
}

/** The versions, oldest first, each with the time it was held to be so. */
export function spansOf(versions: Version[]): Span[] {
  return versions
    .map((version) => ({ version, from: knownFrom(version.grain) ?? 0, to: version.state.system_valid_to }))
    .sort((a, b) => a.from - b.from || (a.to ?? Infinity) - (b.to ?? Infinity));
}

const heldAt = (spans: Span[], at: number): Span | undefined =>
  spans.findLast((span) => span.from <= at && (span.to === null || at < span.to));

const PART = 200;
const MOST = 1000;

/** The versions of a chain, read in parts, and whether there are older ones. */
async function chainOf(address: string, signal: AbortSignal): Promise<{ versions: Version[]; more: boolean }> {
  const versions: Version[] = [];
  while (versions.length < MOST) {
    const part = await read<{ versions: Version[] }>(grainPath(address, "/history"), { limit: PART, cursor: versions.length }, signal);
    versions.push(...part.versions);
    if (part.versions.length < PART) return { versions, more: false };
  }
  return { versions, more: true };
}

export function HistoryPage({ address }: { address: string }) {
  const asked = useAnswer((signal) => chainOf(address, signal), [address]);
  const versions = asked.answer?.versions;
  return (
    <section class="page">
      <Heading title={`History of ${address.slice(0, 12)}`}>
        <a href={href("grain", address)}>The grain</a>
      </Heading>
      {asked.busy && !versions && <Loading what="the versions" />}
      {asked.problem && <Failure problem={asked.problem} again={asked.again} />}
      {versions && versions.length === 0 && <Empty><p>No version of it is here for you to see.</p></Empty>}
      {asked.answer?.more && <p class="dim">The newest {count(asked.answer.versions.length)} versions. <code>grain history</code> has the older ones.</p>}
      {versions && versions.length > 0 && <Timeline key={address} versions={versions} here={address} />}
    </section>
  );
}

const STEPS = 1000;
const WIDTH = 960;
const TALLEST = 22;

function Timeline({ versions, here }: { versions: Version[]; here: string }) {
  const spans = useMemo(() => spansOf(versions), [versions]);
  const start = spans[0]?.from ?? 0;
  const lastChange = Math.max(...spans.map((span) => Math.max(span.from, span.to ?? 0)));
  const end = useMemo(() => lastChange + Math.max((lastChange - start) * 0.25, 60_000), [lastChange, start]);
  const [at, setAt] = useState(end);
  const held = heldAt(spans, at);
  const x = (ms: number) => ((ms - start) / (end - start)) * WIDTH;
  const edges = [...new Set(spans.flatMap((span) => [span.from, ...(span.to === null ? [] : [span.to])]))].sort((a, b) => a - b);
  const before = edges.findLast((edge) => edge < at);
  const after = edges.find((edge) => edge > at);
  // A few versions have room for a bar each; of many each is a thin line.
  const bar = Math.max(1, Math.min(TALLEST, 300 / spans.length));
  const gap = bar > 8 ? 6 : bar / 4;
  const height = spans.length * bar + 8;

  return (
    <>
      <div class="panel timeline">
        <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`${plural(spans.length, "version")} from ${utc(start)} on`}>
          {spans.map((span, index) => (
            <rect
              class={span === held ? "span held" : "span"}
              x={x(span.from)}
              y={index * bar + 4}
              width={Math.max(3, x(span.to ?? end) - x(span.from))}
              height={bar - gap}
              rx={Math.min(3, bar / 4)}
            />
          ))}
          <path class="asof" d={`M${x(at)} 0V${height}`} />
        </svg>
        <div class="asof-row">
          <label for="asof">As of</label>
          <input
            id="asof"
            type="range"
            min={0}
            max={STEPS}
            step={1}
            value={Math.round(((at - start) / (end - start)) * STEPS)}
            aria-valuetext={`${utc(at)} UTC`}
            onInput={(event) => setAt(start + (Number(event.currentTarget.value) / STEPS) * (end - start))}
          />
          <Time ms={at} /> UTC
          <button type="button" class="small" disabled={before === undefined} onClick={() => before !== undefined && setAt(before)}>
            Change before
          </button>
          <button type="button" class="small" disabled={after === undefined} onClick={() => after !== undefined && setAt(after)}>
            Change after
          </button>
        </div>
        <div class="believed" role="status" data-believed={held?.version.address ?? ""}>
          <p class="dim">Believed then</p>
          {held ? <Said version={held.version} /> : <p>Nothing: at this time no version was held to be so.</p>}
        </div>
      </div>
      <h2>Versions, newest first</h2>
      <ol class="versions" reversed>
        {spans.toReversed().map((span, index, all) => (
          <Entry span={span} older={all[index + 1]} now={span === held} here={span.version.address === here} />
        ))}
      </ol>
    </>
  );
}

function Said({ version }: { version: Version }) {
  const { about, says } = said(version.grain);
  return <p class="lead"><Kind of={version.grain.type} /> <strong><Text of={about} max={200} /></strong> <Text of={says} max={600} /></p>;
}

const NOT_COMPARED = ["created_at", "derived_from", "supersession_justification", "provenance_chain", "system_valid_from"];

function changed(span: Span, older: Span | undefined): string[] {
  if (!older) return [];
  const [now, then] = [span.version.grain, older.version.grain];
  return [...new Set([...Object.keys(now), ...Object.keys(then)])].filter(
    (name) => !NOT_COMPARED.includes(name) && JSON.stringify(now[name]) !== JSON.stringify(then[name]),
  );
}

function Entry({ span, older, now, here }: { span: Span; older: Span | undefined; now: boolean; here: boolean }) {
  const { grain, state, address } = span.version;
  const why = grain.supersession_justification;
  const fields = changed(span, older);
  return (
    <li class={now ? "panel now" : "panel"} aria-current={here ? "true" : undefined}>
      <Said version={span.version} />
      <p class="dim">
        <Time ms={span.from} /> UTC {span.to === null ? "until now" : <>until <Time ms={span.to} /></>} · <Address of={address} />
        {here && " · the one you came from"}
        {state.contradicted && <> · <span class="mark bad">contradicted</span></>}
        {state.held && <> · <span class="mark warn">held</span></>}
      </p>
      {typeof why === "string" && <p>Why: <Text of={why} /></p>}
      {typeof grain.author_did === "string" && <p class="dim wrap">By <Text of={grain.author_did} /></p>}
      {fields.length > 0 && older && (
        <details>
          <summary>{plural(fields.length, "field")} changed</summary>
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Changed fields">
            <table>
              <thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead>
              <tbody>
                {fields.map((name) => (
                  <tr>
                    <td><Text of={name} /></td>
                    <td><Value of={older.version.grain[name]} name={name} /></td>
                    <td><Value of={grain[name]} name={name} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </li>
  );
}
