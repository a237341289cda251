// What can stand at the cursor: words of the language, as the server tells them, and within quotes the subjects and
// relations of the newest grains.
import { post } from "../api";
import type { CalAnswer } from "../types";

export interface Candidate {
  text: string;
  insert: string;
}

export interface Offer {
  start: number;
  candidates: Candidate[];
}

const SUBJECT = /(?:\bABOUT\s+|\bsubject\s*(?:=|!=|\bIN\s*\((?:\s*"[^"]*"\s*,)*)\s*)"([^"]*)$/i;
const RELATION = /\brelation\s*(?:=|!=|\bIN\s*\((?:\s*"[^"]*"\s*,)*)\s*"([^"]*)$/i;
const KEPT_FOR = 30_000;

let known: { subjects: string[]; relations: string[]; at: number } | null = null;

/** Nothing of a session may be offered in the next one. */
export const forgetWords = (): void => void (known = null);

async function stored(): Promise<{ subjects: string[]; relations: string[] }> {
  if (known && Date.now() - known.at < KEPT_FOR) return known;
  const [subjects, groups] = await Promise.all([
    post<CalAnswer>("/v1/cal", { query: "RECALL RECENT 1000 | SUBJECTS" }),
    post<CalAnswer>("/v1/cal", { query: "RECALL RECENT 1000 | GROUP BY relation" }),
  ]);
  const texts = (of: unknown): string[] => (Array.isArray(of) ? of : []).filter((one) => typeof one === "string");
  const keys = ((groups.groups ?? []) as { key: unknown }[]).map((group) => group.key);
  known = { subjects: texts(subjects.values), relations: texts(keys), at: Date.now() };
  return known;
}

async function within(before: string, typed: string, which: "subjects" | "relations"): Promise<Offer> {
  const low = typed.toLowerCase();
  const all = (await stored())[which].filter((text) => !/["\\\p{Cc}\p{Cf}]/u.test(text));
  const begins = all.filter((text) => text.toLowerCase().startsWith(low));
  const holds = all.filter((text) => !begins.includes(text) && text.toLowerCase().includes(low));
  return {
    start: before.length - typed.length,
    candidates: [...begins, ...holds].map((text) => ({ text, insert: `${text}"` })),
  };
}

export async function wordsAt(before: string): Promise<Offer> {
  const subject = SUBJECT.exec(before);
  if (subject) return within(before, subject[1] ?? "", "subjects");
  const relation = RELATION.exec(before);
  if (relation) return within(before, relation[1] ?? "", "relations");
  const offer = await post<Offer>("/v1/cal/complete", { before });
  // A word that is followed by another one brings the space between them.
  const candidates = offer.candidates.map(({ text, insert }) => ({ text, insert: /[\w)]$/.test(insert) ? `${insert} ` : insert }));
  return { start: offer.start, candidates };
}
