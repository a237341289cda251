// What the store has of a person, and its erasure.
import { useState } from "preact/hooks";
import { read, userPath } from "../api";
import { useAsk } from "../asked";
import { remember, useKept } from "../kept";
import { Erase } from "../parts/erase";
import { Heading } from "../parts/heading";
import { List, type Row, rowOf } from "../parts/list";
import { Empty, Failure, Loading } from "../parts/notice";
import { Text } from "../text";
import type { Access, Report, Version } from "../types";
import { count, plural, save, TYPES } from "../words";

export function Privacy({ access }: { access: Access }) {
  const own = access.user_id ?? "";
  const [user, setUser] = useKept("privacy-user", own);
  const [shown, setShown] = useKept<Report | null>("privacy-report", null);
  const [asked, ask] = useAsk<Report>();
  const [gone, setGone] = useState("");
  const look = () => {
    setGone("");
    void ask((signal) => read<Report>(userPath(user, "/report"), {}, signal)).then((report) => report && setShown({ ...report, user_id: user }));
  };
  const report = asked.busy || asked.problem ? null : shown;
  const total = report?.counts?.grains ?? report?.addresses?.length ?? 0;
  return (
    <section class="page">
      <Heading title="Privacy" />
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          if (user !== "") look();
        }}
      >
        <div class="field grows">
          <label for="person">Person, by user id</label>
          <input id="person" value={user} autocomplete="off" spellcheck={false} onInput={(event) => setUser(event.currentTarget.value)} />
        </div>
        <div class="buttons"><button type="submit" class="first" disabled={user === "" || asked.busy}>What is known</button></div>
      </form>
      {asked.busy && <Loading what="what is known" />}
      {asked.problem && <Failure problem={asked.problem} again={look} />}
      {report && gone !== report.user_id && <Known report={report} total={total} />}
      {report && total > 0 && (access.operator || access.user_id === report.user_id) && (
        <section class="panel" aria-labelledby="h-erase" key={report.user_id}>
          <h2 id="h-erase">Erase this person</h2>
          <Erase path={userPath(report.user_id ?? "", "/erase")} word={report.user_id ?? ""} wordIs="the user id" file="erasure-of-a-person.json"
            done={() => {
              setGone(report.user_id ?? "");
              remember("privacy-report", null);
            }}
          >
            <p>Every grain of this user goes, in every namespace, state and version, consents too. It cannot be undone.</p>
          </Erase>
        </section>
      )}
      {!report && !asked.busy && !asked.problem && (
        <Empty><p>A grain belongs to a person by its <code>user_id</code>. Type one to see all that the store has of them.</p></Empty>
      )}
    </section>
  );
}

function Known({ report, total }: { report: Report; total: number }) {
  const counts = report.counts ?? {};
  const user = report.user_id ?? "";
  const types = [...TYPES, ...Object.keys(counts)].filter(
    (name, index, all) => all.indexOf(name) === index && !["grains", "current", "held"].includes(name) && (counts[name] ?? 0) > 0,
  );
  return (
    <section class="panel" aria-labelledby="h-known">
      <h2 id="h-known">Known of <Text of={user} max={80} /></h2>
      {total === 0 ? <p>The store has nothing of this person that you may see.</p> : (
        <>
          <dl class="figures">
            <div><dt>grains</dt><dd>{count(total)}</dd></div>
            <div><dt>current</dt><dd>{count(counts.current ?? 0)}</dd></div>
            <div><dt>held</dt><dd>{count(counts.held ?? 0)}</dd></div>
            {types.map((type) => <div><dt><Text of={type} /></dt><dd>{count(counts[type] ?? 0)}</dd></div>)}
          </dl>
          <Grains user={user} total={total} key={user} />
        </>
      )}
    </section>
  );
}

interface Part {
  rows: Row[];
  cursor: string | null;
  complete: boolean;
}

const rowsOf = (versions: Version[]): Row[] =>
  versions.map((one) => rowOf({ grain: one.grain, score: 1, matched_fields: [], content_address: one.address, state: one.state }, false));

function Grains({ user, total }: { user: string; total: number }) {
  const [part, setPart] = useState<Part | null>(null);
  const [asked, ask] = useAsk<Part>();
  const next = async (signal: AbortSignal): Promise<Part> => {
    const report = await read<Report>(userPath(user, "/report"), { versions: true, cursor: part?.cursor }, signal);
    const rows = [...(part?.rows ?? []), ...rowsOf(report.versions ?? [])];
    return { rows, cursor: report.next_cursor ?? null, complete: !report.next_cursor };
  };
  const more = () => {
    if (!asked.busy) void ask(next).then((answer) => answer && setPart(answer));
  };
  const show = () => {
    remember("person-top", 0);
    remember("person-at", 0);
    more();
  };
  const all = async () => {
    const versions: Version[] = [];
    let cursor: string | null | undefined;
    do {
      const report: Report = await read<Report>(userPath(user, "/report"), { versions: true, cursor });
      versions.push(...(report.versions ?? []));
      cursor = report.next_cursor;
    } while (cursor);
    save("known-of-a-person.json", JSON.stringify({ user_id: user, versions }, null, 2), "application/json");
  };
  return (
    <>
      <div class="buttons">
        {!part && <button type="button" disabled={asked.busy} onClick={show}>Show the {plural(total, "grain")}</button>}
        <button type="button" onClick={() => void all()}>Save them as JSON</button>
      </div>
      {asked.problem && <Failure problem={asked.problem} again={more} />}
      {part && part.rows.length > 0 && (
        <div class="short"><List name="person" label="Grains of this person" rows={part.rows} complete={part.complete} more={more} /></div>
      )}
    </>
  );
}
