// Erasure, in three steps: what would go, a typed confirmation, the certificate.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { grainPath, post } from "../api";
import { useAsk } from "../asked";
import { hasHidden } from "../signs";
import { Address, Copy, Text, Time } from "../text";
import type { Erasure, Json } from "../types";
import { plural, save } from "../words";
import { Dialog } from "./dialog";
import { Failure, Loading } from "./notice";

interface EraseProps {
  path: string;
  /** What has to be typed, and what it is called. */
  word: string;
  wordIs: string;
  file: string;
  children?: ComponentChildren;
  done?: () => void;
}

export function Erase({ path, word: named, wordIs: nameIs, file, children, done }: EraseProps) {
  // What cannot be typed as it is seen is not asked for.
  const typeable = !hasHidden(named) && named.length <= 80;
  const word = typeable ? named : "erase";
  const wordIs = typeable ? nameIs : "this word";
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [wait, setWait] = useState(true);
  const [dry, askDry] = useAsk<Erasure>();
  const [real, askReal] = useAsk<Erasure>();
  const refusal = dry.answer?.refusal;
  const held = (dry.answer?.holds.length ?? 0) > 0;
  const nothing = dry.answer !== null && dry.answer.counts.erased === 0;
  const ready = dry.answer && !refusal && !nothing && typed === word && reason.trim() !== "";

  if (real.answer) return <Certificate erasure={real.answer} file={file} />;
  return (
    <>
      {children}
      <form
        class="dry"
        onSubmit={(event) => {
          event.preventDefault();
          void askDry((signal) => post<Erasure>(path, { reason, dry_run: true }, signal));
        }}
      >
        <div class="field">
          <label for="erase-reason">Reason, for the audit log and the certificate</label>
          <input id="erase-reason" required value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </div>
        <button type="submit" disabled={dry.busy || reason.trim() === ""}>See what would go</button>
      </form>
      {dry.busy && <Loading what="what would go" />}
      {dry.problem && <Failure problem={dry.problem} />}
      {dry.answer && (
        <div class="panel inset" data-dry-run>
          <p class="strong">
            {nothing ? "Nothing would be erased." : <>An erasure would take {plural(dry.answer.counts.erased, "grain")}, for good.</>}
          </p>
          {dry.answer.counts.skipped > 0 && <p>{plural(dry.answer.counts.skipped, "grain")} would stay.</p>}
          {dry.answer.application && dry.answer.application.rows + dry.answer.application.blobs > 0 && (
            <p>With them go {plural(dry.answer.application.rows, "row")} and {plural(dry.answer.application.blobs, "file")} of applications.</p>
          )}
          {held && (
            <>
              <p>Under litigation hold, and not to be erased:</p>
              <ul>{dry.answer.holds.map((one) => <li><Address of={one} /></li>)}</ul>
            </>
          )}
          {refusal && <p class="bad"><code><Text of={refusal.code} /></code> <Text of={refusal.message} /></p>}
        </div>
      )}
      {dry.answer && !refusal && !nothing && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!ready) return;
            const body: { [name: string]: Json } = { reason, now: wait };
            void askReal((signal) => post<Erasure>(path, body, signal)).then((answer) => answer && done?.());
          }}
        >
          <div class="field">
            <label for="erase-word">To erase, type {wordIs}: <code><Text of={word} /></code></label>
            <input id="erase-word" autocomplete="off" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </div>
          <label class="check">
            <input type="checkbox" checked={wait} onChange={(event) => setWait(event.currentTarget.checked)} />
            wait until it has left the disk
          </label>
          <div class="buttons">
            <button type="submit" class="danger" disabled={!ready || real.busy}>{real.busy ? "Erasing …" : "Erase for good"}</button>
          </div>
        </form>
      )}
      {real.problem && <Failure problem={real.problem} />}
    </>
  );
}

function Certificate({ erasure, file }: { erasure: Erasure; file: string }) {
  const { certificate, counts } = erasure;
  const text = JSON.stringify(certificate, null, 2);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const checkpoint = certificate?.checkpoint;
  const signer = checkpoint && typeof checkpoint === "object" && !Array.isArray(checkpoint) ? checkpoint : null;
  return (
    <div class="panel inset" data-certificate role="status">
      <h3 ref={heading} tabIndex={-1}>Erased</h3>
      <p>
        {plural(counts.erased, "grain")} {counts.erased === 1 ? "is" : "are"} gone.{" "}
        {erasure.scrubbed ? "Nothing is left on the disk." : "Nobody sees them; what is left on the disk is removed shortly."}
      </p>
      {erasure.scrub_failure && (
        <p class="bad"><code><Text of={erasure.scrub_failure.code} /></code> <Text of={erasure.scrub_failure.message} /></p>
      )}
      {certificate && (
        <>
          <dl class="fields">
            <div><dt>Audit entry</dt><dd class="num">{certificate.sequence}</dd></div>
            <div><dt>Hash of the chain</dt><dd class="wrap"><code>{certificate.hash}</code> <Copy text={certificate.hash} what="the hash" /></dd></div>
            {typeof signer?.signer === "string" && <div><dt>Signed by</dt><dd class="wrap"><Text of={signer.signer} /></dd></div>}
            {typeof signer?.time_ms === "number" && <div><dt>At</dt><dd><Time ms={signer.time_ms} /> UTC</dd></div>}
          </dl>
          <button type="button" class="first" onClick={() => save(file, text, "application/json")}>Save the certificate</button>
          <p class="dim">Keep it elsewhere: with it, <code>verify</code> finds what a backup brings back.</p>
        </>
      )}
    </div>
  );
}

export function EraseGrain({ address, close, again }: { address: string; close: () => void; again: () => void }) {
  const [gone, setGone] = useState(false);
  const leave = () => {
    close();
    if (gone) again();
  };
  const word = address.slice(0, 8);
  return (
    <Dialog title="Erase this grain" close={leave} wide>
      <Erase path={grainPath(address, "/erase")} word={word} wordIs="the first eight signs of its address" file={`erasure-${word}.json`} done={() => setGone(true)}>
        <p>An erasure takes this grain alone. Other versions are grains of their own.</p>
      </Erase>
    </Dialog>
  );
}
