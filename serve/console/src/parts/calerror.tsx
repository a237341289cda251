// A refused statement with the place that is wrong, and the statement that was probably meant.
import type { Problem } from "../api";
import { Text } from "../text";
import { fromByteOffset } from "../words";

const AROUND = 120;

export function CalError({ problem, query, use }: { problem: Problem; query: string; use?: (query: string) => void }) {
  const { position, example } = problem;
  const from = position ? fromByteOffset(query, position.start) : 0;
  const to = position ? Math.max(fromByteOffset(query, position.end), from) : 0;
  const left = Math.max(0, from - AROUND);
  return (
    <div class="failure" role="alert">
      <p><code><Text of={problem.code} /></code> <Text of={problem.message} /></p>
      {position && (
        <>
          <p class="place">
            {left > 0 && "… "}
            <Text of={query.slice(left, from)} />
            <mark><Text of={query.slice(from, to) || "▯"} /></mark>
            <Text of={query.slice(to, to + AROUND)} />
          </p>
          <p class="dim">Line {position.line}, column {position.col}</p>
        </>
      )}
      {(problem.suggestion ?? problem.hint) && <p><Text of={(problem.suggestion ?? problem.hint) as string} /></p>}
      {example && use && (
        <p class="row-of">
          <code class="example"><Text of={example} /></code>
          <button type="button" class="small" onClick={() => use(example)}>Use this</button>
        </p>
      )}
      {problem.retryAfter && <p>Try again in {problem.retryAfter} seconds.</p>}
    </div>
  );
}
