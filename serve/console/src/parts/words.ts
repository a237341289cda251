// What can stand at the cursor: words of the language, and within quotes what the store holds, as the server tells them.
import { post } from "../api";

export interface Candidate {
  text: string;
  insert: string;
}

export interface Offer {
  start: number;
  candidates: Candidate[];
}

export const wordsAt = (before: string): Promise<Offer> => post<Offer>("/v1/cal/complete", { before });
