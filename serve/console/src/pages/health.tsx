// How the store is: findings, sizes, requests and how long they take.
import { useEffect } from "preact/hooks";
import { read } from "../api";
import { useAnswer } from "../asked";
import { Bar, Chart } from "../parts/charts";
import { Heading } from "../parts/heading";
import { Empty, Failure, Loading } from "../parts/notice";
import { Text } from "../text";
import type { Access, Finding, Json, Metrics } from "../types";
import { bytes, count, duration, milliseconds, plural, utc } from "../words";

export const Health = ({ access }: { access: Access }) => (
  <section class="page wide">
    <Heading title="Health" />
    {access.operator ? (
      <>
        <Requests />
        <div class="columns">
          <Findings />
          <Sizes />
        </div>
      </>
    ) : <Empty><p>How the store is doing is shown to the operator of the whole of it.</p></Empty>}
  </section>
);

const EVERY = 5000;
const POINTS = 120;
const FEWEST = 12;

type Point = Metrics["series"][number];

/** The series without gaps: a point is made when a request comes, so a quiet time has none. */
export function evenly(series: Point[]): Point[] {
  const out: Point[] = [];
  for (const point of series) {
    const last = out[out.length - 1];
    const missing = last ? Math.min(POINTS, Math.round((point.at_ms - last.at_ms) / EVERY) - 1) : 0;
    for (let at = 1; last && at <= missing; at += 1) {
      out.push({ at_ms: last.at_ms + at * EVERY, requests: 0, errors: 0, p50_ms: null, p99_ms: null });
    }
    out.push(point);
  }
  return out.slice(-POINTS);
}

function Requests() {
  const asked = useAnswer((signal) => read<Metrics>("/v1/metrics.json", {}, signal), []);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) asked.again();
    }, EVERY);
    return () => clearInterval(timer);
  }, []);
  const metrics = asked.answer;
  if (!metrics) return asked.problem ? <Failure problem={asked.problem} again={asked.again} /> : <Loading what="the figures" />;
  const { requests } = metrics;
  const series = evenly(metrics.series);
  const last = series[series.length - 1];
  const end = last ? last.at_ms : Date.now();
  // A server that was just started has a minute to show, and not ten.
  const room = Math.max(series.length, Math.min(POINTS, Math.max(FEWEST, Math.ceil(metrics.uptime_ms / EVERY))));
  const [from, to] = [utc(end - room * EVERY).slice(11), utc(end).slice(11)];
  // The newest point stands at the right, whatever there is before it.
  const values = (of: (point: Point) => number | null) => [...Array<null>(room - series.length).fill(null), ...series.map(of)];
  const busiest = requests.toSorted((a, b) => b.count - a.count);
  return (
    <>
      <p class="dim">Up for {duration(metrics.uptime_ms)}. One point for five seconds, of the last ten minutes at most.</p>
      <div class="charts">
        <Chart label="Requests" from={from} to={to} unit={(value) => count(Math.round(value))} lines={[
          { name: "all", tone: "one", values: values((point) => point.requests) },
          { name: "errors", tone: "bad", values: values((point) => point.errors) },
        ]} />
        <Chart label="Latency" from={from} to={to} unit={milliseconds} lines={[
          { name: "p50", tone: "one", values: values((point) => (point.requests > 0 ? point.p50_ms : null)) },
          { name: "p99", tone: "two", values: values((point) => (point.requests > 0 ? point.p99_ms : null)) },
        ]} />
      </div>
      <details>
        <summary>{plural(requests.length, "route")}</summary>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Routes">
          <table>
            <thead><tr><th scope="col">Route</th><th scope="col">Requests</th><th scope="col">Errors</th><th scope="col">p50</th><th scope="col">p99</th></tr></thead>
            <tbody>
              {busiest.map((one) => (
                <tr key={`${one.method} ${one.route}`}>
                  <td><code>{one.method} <Text of={one.route} /></code></td>
                  <td class="num">{count(one.count)}</td>
                  <td class={one.errors > 0 ? "num bad" : "num"}>{count(one.errors)}</td>
                  <td class="num">{one.latency_ms.p50 === null ? "" : milliseconds(one.latency_ms.p50)}</td>
                  <td class="num">{one.latency_ms.p99 === null ? "" : milliseconds(one.latency_ms.p99)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

const RANK = { bad: 0, notice: 1, good: 2 };
const TONE = { bad: "mark bad", notice: "mark warn", good: "mark good" };

function Findings() {
  const asked = useAnswer((signal) => read<{ ok: boolean; findings: Finding[] }>("/v1/doctor", {}, signal), []);
  const findings = (asked.answer?.findings ?? []).toSorted((a, b) => RANK[a.health] - RANK[b.health]);
  const good = findings.filter((one) => one.health === "good");
  const others = findings.filter((one) => one.health !== "good");
  const list = (of: Finding[]) => (
    <ul class="findings">
      {of.map((one) => (
        <li>
          <span class={TONE[one.health]}>{one.health}</span> <strong><Text of={one.name.replaceAll("_", " ")} /></strong>{" "}
          <Text of={one.detail} />
          {one.advice && <p>What to do: <Text of={one.advice} /></p>}
        </li>
      ))}
    </ul>
  );
  return (
    <section class="panel" aria-labelledby="h-doctor">
      <h2 id="h-doctor">Findings</h2>
      {asked.busy && !asked.answer && <Loading what="the findings" />}
      {asked.problem && <Failure problem={asked.problem} again={asked.again} />}
      {asked.answer && (
        <>
          <p>
            <span class={asked.answer.ok ? "mark good" : "mark bad"}>{asked.answer.ok ? "sound" : "not sound"}</span>{" "}
            {others.length === 0 ? `All ${good.length} checks are good.` : `${plural(others.length, "finding")} to look at, ${good.length} are good.`}
          </p>
          {list(others)}
          {good.length > 0 && <details open={others.length === 0}><summary>{plural(good.length, "good finding")}</summary>{list(good)}</details>}
        </>
      )}
    </section>
  );
}

type Stats = { [name: string]: Json };

function Sizes() {
  const asked = useAnswer((signal) => read<Stats>("/v1/stats", {}, signal), []);
  const stats = asked.answer;
  return (
    <section class="panel" aria-labelledby="h-stats">
      <h2 id="h-stats">Sizes</h2>
      {asked.busy && !stats && <Loading what="the sizes" />}
      {asked.problem && <Failure problem={asked.problem} again={asked.again} />}
      {stats && (
        <>
          <dl class="figures">
            {["grains", "states", "audit_entries", "erased_grains", "erased_users"].map((name) => (
              <div><dt>{name.replaceAll("_", " ")}</dt><dd>{count(Number(stats[name] ?? 0))}</dd></div>
            ))}
          </dl>
          <p>
            Preset <Text of={String(stats.preset ?? "none")} />, {stats.encrypted ? "encrypted" : "not encrypted"},{" "}
            {stats.compressed ? "compressed" : "not compressed"}{stats.read_only ? ", opened to be read only" : ""}.
          </p>
          <Bars title="On the disk" of={[["truth", stats.disk_bytes], ["index", stats.index_bytes], ["text", stats.text_bytes]]} />
          <Bars title="Memory" of={entries(stats.memory)} most={Number(stats.memory_bytes ?? 0)} />
        </>
      )}
    </section>
  );
}

const entries = (of: Json | undefined): [string, Json | undefined][] =>
  of && typeof of === "object" && !Array.isArray(of) ? Object.entries(of) : [];

function Bars({ title, of, most }: { title: string; of: [string, Json | undefined][]; most?: number }) {
  const rows = of.map(([name, value]) => [name, Number(value ?? 0)] as const).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  const scale = Math.max(1, ...rows.map(([, value]) => value));
  return (
    <>
      <h3>{title}{most ? <span class="dim">, of {bytes(most)} at most</span> : ""}</h3>
      <dl class="bars">
        {rows.map(([name, value]) => (
          <div><dt><Text of={name.replaceAll("_", " ")} /></dt><dd><Bar value={value / scale} text={bytes(value)} /></dd></div>
        ))}
      </dl>
    </>
  );
}
