// What stands where an answer is not there: it comes, there is none, or it was refused.
import type { ComponentChildren } from "preact";
import type { Problem } from "../api";
import { Text } from "../text";

export const Loading = ({ what }: { what: string }) => (
  <p class="notice" role="status"><span class="spinner" aria-hidden="true" />Loading {what} …</p>
);

export const Empty = ({ children }: { children: ComponentChildren }) => <div class="notice empty">{children}</div>;

const TITLES: { [status: number]: string } = {
  0: "No connection",
  400: "The request was not understood",
  401: "Not signed in",
  403: "Not allowed",
  404: "Not found",
  409: "It does not fit what is stored",
  410: "Erased",
  413: "Too large",
  422: "That does not read",
  429: "Too many requests",
  500: "The server failed",
  503: "Not available now",
};

export function Failure({ problem, again }: { problem: Problem; again?: () => void }) {
  const title = TITLES[problem.status] ?? "It was refused";
  return (
    <div class="failure" role="alert">
      <p><strong>{title}.</strong> <Text of={problem.message} /></p>
      {problem.hint && <p>What to do: <Text of={problem.hint} /></p>}
      {problem.retryAfter && <p>Try again in {problem.retryAfter} seconds.</p>}
      <p class="failure-foot">
        {problem.code && <code><Text of={problem.code} /></code>}
        {again && <button type="button" class="small" onClick={again}>Try again</button>}
      </p>
    </div>
  );
}
