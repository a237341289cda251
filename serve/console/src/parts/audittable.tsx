// Entries of the audit log as a table. A refusal says why.
import { Address, Text, Time } from "../text";
import type { AuditEntry } from "../types";
import { Fields } from "./value";

const SHOWN = [
  "sequence", "time_ms", "operation", "actor", "subjects", "decision", "reason", "why", "code",
];

export const AuditTable = ({ entries, by }: { entries: AuditEntry[]; by: (actor: string) => void }) => (
  <div class="scroll-x" tabIndex={0} role="region" aria-label="Entries of the log">
    <table class="audit">
      <thead>
        <tr><th scope="col">Entry</th><th scope="col">Time (UTC)</th><th scope="col">Operation</th><th scope="col">Decision</th><th scope="col">Of what, and why</th><th scope="col">Actor</th></tr>
      </thead>
      <tbody>{entries.map((entry) => <Line key={entry.sequence} entry={entry} by={by} />)}</tbody>
    </table>
  </div>
);

function Line({ entry, by }: { entry: AuditEntry; by: (actor: string) => void }) {
  const refused = entry.decision !== "done";
  const rest = Object.fromEntries(
    Object.entries(entry).filter(([name, value]) => !SHOWN.includes(name) && !(Array.isArray(value) && value.length === 0)),
  );
  return (
    <tr class={refused ? "refused" : ""} data-sequence={entry.sequence}>
      <td class="num">{entry.sequence}</td>
      <td><Time ms={entry.time_ms} /></td>
      <td><Text of={entry.operation} />{entry.call && typeof entry.call.statement === "string" && <> <Text of={entry.call.statement} /></>}</td>
      <td><span class={refused ? "mark bad" : "mark good"}><Text of={entry.decision} /></span></td>
      <td>
        {entry.subjects.slice(0, 4).map((subject, index) => <>{index > 0 && " "}<Address of={subject} /></>)}
        {entry.subjects.length > 4 && ` and ${entry.subjects.length - 4} more`}
        {entry.why && <p class="bad">{entry.code && <code><Text of={entry.code} /></code>} <Text of={entry.why} /></p>}
        {!entry.why && entry.code && <p class="bad"><code><Text of={entry.code} /></code></p>}
        {entry.reason && <p>Reason: <Text of={entry.reason} max={300} /></p>}
        {Object.keys(rest).length > 0 && <details><summary>more</summary><Fields of={rest} depth={1} /></details>}
      </td>
      <td class="actor">
        <button type="button" class="small quiet" title="only entries of this actor" onClick={() => by(entry.actor)}>
          <Text of={entry.actor} max={12} />
        </button>
      </td>
    </tr>
  );
}
