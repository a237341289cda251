// One grain whole: what it says, its state, who may change it, where it comes from, its bytes.
import { grainPath, read } from "../api";
import { useAnswer } from "../asked";
import { Actions } from "../parts/actions";
import { Heading } from "../parts/heading";
import { Failure, Loading } from "../parts/notice";
import { PolicyInWords } from "../parts/policy";
import { Links } from "../parts/links";
import { Fields } from "../parts/value";
import { href } from "../router";
import { Address, Copy, Kind, Text, Time } from "../text";
import type { Access, Whole } from "../types";
import { base64Length, bytes, fromBase64, plural, said, save, timeOf } from "../words";

export function GrainPage({ address, access }: { address: string; access: Access }) {
  const grain = useAnswer((signal) => read<Whole>(grainPath(address), {}, signal), [address]);
  return (
    <section class="page">
      <Heading title={`Grain ${address.slice(0, 12)}`} />
      {grain.busy && !grain.answer && <Loading what="the grain" />}
      {grain.problem && <Failure problem={grain.problem} again={grain.again} />}
      {grain.answer && grain.answer.address === address && <Shown whole={grain.answer} access={access} again={grain.again} />}
    </section>
  );
}

function Shown({ whole, access, again }: { whole: Whole; access: Access; again: () => void }) {
  const { address, grain } = whole;
  const { about, says } = said(grain);
  const time = timeOf(grain);
  return (
    <>
      <p class="lead">
        <Kind of={grain.type} /> <strong><Text of={about} max={300} /></strong> <Text of={says} max={600} />
      </p>
      <p class="whole-address"><code>{address}</code> <Copy text={address} what="the address" /></p>
      <div class="columns">
        <div>
          <section class="panel" aria-labelledby="h-fields">
            <h2 id="h-fields">Fields</h2>
            <Fields of={grain} />
          </section>
          <Links address={address} grain={grain} />
        </div>
        <div>
          <section class="panel" aria-labelledby="h-state">
            <h2 id="h-state">State</h2>
            <StateInWords whole={whole} />
            {time !== null && <p class="dim">From <Time ms={time} /> UTC</p>}
            <p><a href={href("history", address)}>Its history on a timeline</a></p>
          </section>
          <PolicyInWords address={address} />
          <Actions whole={whole} access={access} again={again} />
          <Bytes whole={whole} />
        </div>
      </div>
    </>
  );
}

function StateInWords({ whole: { state } }: { whole: Whole }) {
  const current = !state.superseded_by && !state.contradicted && state.verification_status !== "retracted";
  return (
    <ul class="plain">
      <li>{current ? <span class="mark good">current</span> : <span class="mark warn">not current</span>}</li>
      {state.superseded_by && (
        <li>
          Replaced by <Address of={state.superseded_by} />
          {state.system_valid_to !== null && <> on <Time ms={state.system_valid_to} /> UTC</>}
        </li>
      )}
      {state.contradicted && <li><span class="mark bad">contradicted</span></li>}
      {state.held && <li><span class="mark warn">held</span> A litigation hold: nothing replaces or erases it until it is lifted.</li>}
      {state.needs_review && <li><span class="mark warn">waits for review</span> by a person</li>}
      <li>Verification: <Text of={state.verification_status} /></li>
      {state.access_count !== undefined && (
        <li class="dim">
          Given {plural(state.access_count, "time")}
          {state.last_accessed_at && <>, last on <Time ms={state.last_accessed_at} /></>}
        </li>
      )}
    </ul>
  );
}

const VERDICTS: { [verdict: string]: [string, string] } = {
  valid: ["good", "The signature is over these bytes."],
  invalid: ["bad", "The signature does not fit these bytes."],
  unverifiable: ["warn", "The signature cannot be checked here."],
};

function Bytes({ whole }: { whole: Whole }) {
  const { address, blob, cose, signature, state } = whole;
  const [tone, sentence] = VERDICTS[signature?.verdict ?? ""] ?? ["", ""];
  const name = address.slice(0, 12);
  return (
    <section class="panel" aria-labelledby="h-bytes">
      <h2 id="h-bytes">Signature and bytes</h2>
      {signature ? (
        <>
          <p><span class={`mark ${tone}`}><Text of={signature.verdict} /></span> {sentence}</p>
          {signature.did && <p class="wrap">By <Text of={signature.did} /></p>}
          {signature.reason && <p><Text of={signature.reason} /></p>}
        </>
      ) : <p>Not signed. Its address is the SHA-256 of its bytes all the same.</p>}
      <p class="row-of">
        <span>{bytes(base64Length(blob))} of grain{cose ? `, ${bytes(base64Length(cose))} of envelope` : ""}</span>
        <button type="button" class="small" onClick={() => save(`${name}.mg`, fromBase64(blob), "application/octet-stream")}>
          Save the bytes
        </button>
        {cose && (
          <button type="button" class="small" onClick={() => save(`${name}.cose`, fromBase64(cose), "application/cose")}>
            Save the envelope
          </button>
        )}
      </p>
      {state.embedding_refs && state.embedding_refs.length > 0 && (
        <p class="dim">
          Vectors: <Text of={state.embedding_refs.map((of) => `${of.model} (${of.dimensions}, ${of.distance_metric})`).join(", ")} />
        </p>
      )}
    </section>
  );
}
