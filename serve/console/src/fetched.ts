// The texts of grains that an answer names by their addresses alone.
import { post } from "./api";
import type { Grain } from "./types";

export async function grainsOf(addresses: string[], signal: AbortSignal): Promise<Map<string, Grain>> {
  const wanted = [...new Set(addresses)];
  const out = new Map<string, Grain>();
  if (wanted.length === 0) return out;
  const { grains } = await post<{ grains: (Grain | null)[] }>("/v1/grains/get", { addresses: wanted }, signal);
  wanted.forEach((address, index) => {
    const grain = grains[index];
    if (grain) out.set(address, grain);
  });
  return out;
}
