// Finding grains, by filters or by a statement of CAL.
import { useKept } from "../kept";
import { CalAsk } from "../parts/calask";
import { FilterAsk } from "../parts/filterask";
import { Heading } from "../parts/heading";
import type { Access } from "../types";

export function Find({ access }: { access: Access }) {
  const [mode, setMode] = useKept<"filters" | "cal">("find-mode", "filters");
  return (
    <section class="page full">
      <Heading title="Find">
        <div class="tabs" role="group" aria-label="How to find">
          <button type="button" aria-pressed={mode === "filters"} onClick={() => setMode("filters")}>Filters</button>
          <button type="button" aria-pressed={mode === "cal"} onClick={() => setMode("cal")}>CAL</button>
        </div>
      </Heading>
      {mode === "filters" ? <FilterAsk /> : <CalAsk access={access} />}
    </section>
  );
}
