// Where a grain comes from, what comes from it, and what it is linked with.
import type { ComponentChild } from "preact";
import { grainPath, read } from "../api";
import { useAnswer } from "../asked";
import { grainsOf } from "../fetched";
import { Address, Kind, Text } from "../text";
import type { Grain, Linked, Related } from "../types";
import { said } from "../words";
import { Failure, Loading } from "./notice";

const MOST = 50;

interface Around {
  ancestry: { grains: Linked[]; more: boolean };
  children: { grains: Linked[]; more: boolean };
  related: { links: Related[]; more: boolean };
  grains: Map<string, Grain>;
}

async function around(address: string, signal: AbortSignal): Promise<Around> {
  const asked = { limit: MOST, include_superseded: true };
  const [ancestry, children, related] = await Promise.all([
    read<Around["ancestry"]>(grainPath(address, "/ancestry"), asked, signal),
    read<Around["children"]>(grainPath(address, "/children"), asked, signal),
    read<Around["related"]>(grainPath(address, "/related"), asked, signal),
  ]);
  const addresses = [...ancestry.grains, ...children.grains, ...related.links].map((one) => one.address);
  return { ancestry, children, related, grains: await grainsOf(addresses, signal) };
}

export function Links({ address, grain }: { address: string; grain: Grain }) {
  const asked = useAnswer((signal) => around(address, signal), [address]);
  const { answer } = asked;
  const line = (of: string, note: string) => <OneLine address={of} grain={answer?.grains.get(of)} note={note} />;
  const none = answer && answer.ancestry.grains.length + answer.children.grains.length + answer.related.links.length === 0;
  const missing = Array.isArray(grain.derived_from) && answer && answer.ancestry.grains.length === 0;
  return (
    <section class="panel" aria-labelledby="h-links">
      <h2 id="h-links">Provenance</h2>
      {asked.busy && !answer && <Loading what="what it is linked with" />}
      {asked.problem && <Failure problem={asked.problem} again={asked.again} />}
      {none && !missing && <p class="dim">It comes from no other grain, and none comes from it.</p>}
      {missing && <p class="dim">It names grains that it comes from, which are not here or not for you to see.</p>}
      {answer && (
        <>
          <Group title="Comes from" more={answer.ancestry.more}>
            {answer.ancestry.grains.map((one) => line(one.address, one.hops && one.hops > 1 ? `${one.hops} steps` : ""))}
          </Group>
          <Group title="What comes from it" more={answer.children.more}>
            {answer.children.grains.map((one) => line(one.address, one.state?.superseded_by ? "superseded" : ""))}
          </Group>
          <Group title="Related" more={answer.related.more}>
            {answer.related.links.map((one) => line(one.address, `${one.direction === "in" ? "from it: " : ""}${one.kind}`))}
          </Group>
        </>
      )}
    </section>
  );
}

function Group({ title, more, children }: { title: string; more: boolean; children: ComponentChild[] }) {
  if (children.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="links">{children}</ul>
      {more && <p class="dim">The first {MOST}; there are more.</p>}
    </>
  );
}

function OneLine({ address, grain, note }: { address: string; grain: Grain | undefined; note: string }) {
  const { about, says } = grain ? said(grain) : { about: "", says: "" };
  return (
    <li>
      <Address of={address} /> {grain && <Kind of={grain.type} />} <span class="one-line"><Text of={`${about} ${says}`.trim()} max={160} /></span>
      {note && <span class="dim"> <Text of={note} /></span>}
    </li>
  );
}
