// What may be done with a grain: replace, contradict, hold, verify, erase. Each asks before it does anything.
import { useState } from "preact/hooks";
import { grainPath, post } from "../api";
import { useAsk } from "../asked";
import { go } from "../router";
import { visibleJson } from "../signs";
import { Address } from "../text";
import type { Access, Grain, Json, Whole } from "../types";
import { Dialog } from "./dialog";
import { EraseGrain } from "./erase";
import { Failure } from "./notice";

type Doing = "" | "supersede" | "contradict" | "hold" | "lift-hold" | "verification" | "erase";

export function Actions({ whole, access, again }: { whole: Whole; access: Access; again: () => void }) {
  const [doing, setDoing] = useState<Doing>("");
  const { state } = whole;
  const writes = access.tier === 1;
  // Some rules let a person erase what is theirs.
  const mayErase = access.operator || (writes && Boolean(access.user_id) && whole.grain.user_id === access.user_id);
  if (!writes && !mayErase) {
    return (
      <section class="panel" aria-labelledby="h-actions">
        <h2 id="h-actions">Actions</h2>
        <p class="dim">This session reads only.</p>
      </section>
    );
  }
  const close = () => setDoing("");
  const done = () => {
    close();
    again();
  };
  const button = (what: Doing, label: string, tone = "") => (
    <button type="button" class={tone} onClick={() => setDoing(what)}>{label}</button>
  );
  const current = !state.superseded_by && !state.contradicted;
  return (
    <section class="panel" aria-labelledby="h-actions">
      <h2 id="h-actions">Actions</h2>
      <div class="buttons">
        {writes && !state.superseded_by && button("supersede", "Replace …")}
        {writes && current && button("contradict", "Contradict …")}
        {writes && button("verification", "Verification …")}
        {writes && (state.held ? button("lift-hold", "Lift the hold …") : button("hold", "Hold …"))}
        {mayErase && button("erase", "Erase …", "danger")}
      </div>
      {doing === "supersede" && <Replace whole={whole} close={close} />}
      {doing === "contradict" && (
        <WithReason title="Contradict this grain" path={grainPath(whole.address, "/contradict")} verb="Contradict"
          text="It is then no longer current, and stays in the history." close={close} done={done} />
      )}
      {doing === "hold" && (
        <WithReason title="Put a litigation hold on this grain" path={grainPath(whole.address, "/hold")} verb="Hold"
          text="Until the hold is lifted nothing replaces, contradicts or erases it." close={close} done={done} />
      )}
      {doing === "lift-hold" && (
        <WithReason title="Lift the litigation hold" path={grainPath(whole.address, "/lift-hold")} verb="Lift"
          text="What the policy of the grain allows is possible again." close={close} done={done} />
      )}
      {doing === "verification" && (
        <WithReason title="Set the verification status" path={grainPath(whole.address, "/verification")} verb="Set"
          text="A retraction is final." status={state.verification_status} close={close} done={done} />
      )}
      {doing === "erase" && <EraseGrain address={whole.address} close={close} again={again} />}
    </section>
  );
}

interface ReasonProps {
  title: string;
  text: string;
  path: string;
  verb: string;
  status?: string;
  close: () => void;
  done: () => void;
}

const STATUSES = ["unverified", "verified", "contested", "retracted"];

function WithReason({ title, text, path, verb, status, close, done }: ReasonProps) {
  const [reason, setReason] = useState("");
  const [chosen, setChosen] = useState(status ?? "");
  const [asked, ask] = useAsk<object>();
  const send = async () => {
    const body: { [name: string]: Json } = { reason };
    if (status !== undefined) body.status = chosen;
    if (await ask((signal) => post<object>(path, body, signal).then((answer) => answer ?? {}))) done();
  };
  return (
    <Dialog title={title} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <p>{text}</p>
        {status !== undefined && (
          <div class="field">
            <label for="status">Status</label>
            <select id="status" value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
              {STATUSES.map((one) => <option value={one}>{one}</option>)}
            </select>
          </div>
        )}
        <div class="field">
          <label for="reason">Reason, for the audit log</label>
          <textarea id="reason" rows={3} required value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </div>
        {asked.problem && <Failure problem={asked.problem} />}
        <div class="buttons">
          <button type="submit" class="first" disabled={asked.busy || reason.trim() === ""}>{verb}</button>
          <button type="button" onClick={close}>Cancel</button>
        </div>
      </form>
    </Dialog>
  );
}

// What the store sets, or what belongs to the old version alone.
const OF_THE_OLD = [
  "derived_from", "provenance_chain", "supersession_justification", "supersession_auth", "system_valid_from",
  "system_valid_to", "superseded_by", "verification_status",
];

function draftOf(grain: Grain): string {
  const draft: Grain = { ...grain, created_at: Date.now() };
  for (const name of OF_THE_OLD) delete draft[name];
  return visibleJson(JSON.stringify(draft, null, 2));
}

function Replace({ whole, close }: { whole: Whole; close: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(whole.grain));
  const [justification, setJustification] = useState("");
  const [asked, ask] = useAsk<{ address: string; warnings?: string[] }>();
  let grain: Json | undefined;
  let wrong = "";
  try {
    grain = JSON.parse(draft) as Json;
    if (grain === null || typeof grain !== "object" || Array.isArray(grain)) wrong = "A grain is an object of JSON.";
  } catch (error) {
    wrong = String((error as Error).message);
  }
  const send = async () => {
    const body: { [name: string]: Json | undefined } = { grain };
    if (justification.trim()) body.justification = justification;
    const answer = await ask((signal) => post(grainPath(whole.address, "/supersede"), body, signal));
    if (answer) {
      close();
      go("grain", answer.address);
    }
  };
  return (
    <Dialog title="Replace this grain by a newer one" close={close} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <p>The old one, <Address of={whole.address} />, stays in the history. Its policy decides whether it may be replaced.</p>
        <div class="field">
          <label for="draft">New grain, in JSON</label>
          <textarea id="draft" class="code" rows={14} spellcheck={false} value={draft} aria-invalid={wrong !== ""}
            aria-describedby="draft-wrong" onInput={(event) => setDraft(event.currentTarget.value)} />
          <p id="draft-wrong" class="bad" role="status">{wrong}</p>
        </div>
        <div class="field">
          <label for="justification">Why it is replaced</label>
          <input id="justification" value={justification} onInput={(event) => setJustification(event.currentTarget.value)} />
        </div>
        {asked.problem && <Failure problem={asked.problem} />}
        <div class="buttons">
          <button type="submit" class="first" disabled={asked.busy || wrong !== ""}>Replace</button>
          <button type="button" onClick={close}>Cancel</button>
        </div>
      </form>
    </Dialog>
  );
}
