// Who may replace a grain, in words.
import { grainPath, read } from "../api";
import { useAnswer } from "../asked";
import { Address, Text, Time } from "../text";
import type { Policy } from "../types";
import { Failure, Loading } from "./notice";

const OPEN_TO: { [who: string]: string } = {
  anyone: "Anyone may replace it.",
  anyone_with_justification: "Anyone may replace it who gives a reason.",
  one_authorized_signer: "One of the named signers may replace it.",
  quorum: "A number of the named signers may replace it together.",
  nobody: "Nobody may replace it.",
};

const LINKS: { [link: string]: string } = {
  older_version: "an older version",
  newer_version: "a newer version",
  ancestor: "a grain that it comes from",
};

/** The demands, but for one that only repeats the sentence above them. */
const demandsOf = (policy: Policy): string[] => policy.demands.filter((demand) => `${demand.toLowerCase()}.` !== OPEN_TO[policy.open_to]?.toLowerCase());

export function PolicyInWords({ address }: { address: string }) {
  const asked = useAnswer(
    (signal) => read<{ policy: Policy }>(grainPath(address, "/policy"), {}, signal),
    [address],
  );
  const policy = asked.answer?.policy;
  return (
    <section class="panel" aria-labelledby="h-policy">
      <h2 id="h-policy">Who may change it</h2>
      {asked.busy && !policy && <Loading what="its policy" />}
      {asked.problem && <Failure problem={asked.problem} again={asked.again} />}
      {policy && (
        <div data-policy={policy.open_to}>
          <p class={policy.open_to === "anyone" ? "" : "strong"}>{OPEN_TO[policy.open_to] ?? <Text of={policy.open_to} />}</p>
          <ul>{demandsOf(policy).map((demand) => <li><Text of={demand} /></li>)}</ul>
          <p class="dim">Mode <Text of={policy.mode} />, scope <Text of={policy.scope} />
            {policy.threshold !== undefined && <>, {policy.threshold} signatures</>}
            {policy.locked_until !== undefined && <>, until <Time ms={policy.locked_until < 1e11 ? policy.locked_until * 1000 : policy.locked_until} /></>}
          </p>
          {policy.then_open_to && policy.then_open_to !== policy.open_to && (
            <p>After the lock: {OPEN_TO[policy.then_open_to] ?? <Text of={policy.then_open_to} />}</p>
          )}
          {policy.fails_closed && <p class="notice warn">The policy is not understood, so it is locked.</p>}
          {policy.authorized.length > 0 && (
            <>
              <p>Named in it:</p>
              <ul class="plain wrap">{policy.authorized.map((did) => <li><code><Text of={did} /></code></li>)}</ul>
            </>
          )}
          {(policy.protected_by ?? []).length > 0 && (
            <>
              <p>Also bound by:</p>
              <ul>
                {policy.protected_by?.map((other) => (
                  <li>
                    {LINKS[other.link] ?? <Text of={other.link} />} {other.address ? <Address of={other.address} /> : "that you do not see"}:{" "}
                    <Text of={other.mode} />{other.demand ? <>, <Text of={other.demand} /></> : ""}
                  </li>
                ))}
              </ul>
            </>
          )}
          {policy.warnings?.map((warning) => <p class="notice warn"><Text of={warning} /></p>)}
        </div>
      )}
    </section>
  );
}
