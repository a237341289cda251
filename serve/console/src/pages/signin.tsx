// Signing in by the one-time code of the printed address, or by a token.
import { useEffect, useState } from "preact/hooks";
import { Problem, signIn } from "../api";
import { Failure } from "../parts/notice";
import type { Access } from "../types";

/** Takes the code out of the address at once, so that neither the history nor a bookmark keeps it. */
export function takeCode(): string | null {
  const found = /^#code=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", `${location.pathname}#/find`);
  try {
    return decodeURIComponent(found[1] ?? "");
  } catch {
    return found[1] ?? null;
  }
}

interface SignInProps {
  code: string | null;
  ended: boolean;
  done: (access: Access) => void;
}

export function SignIn({ code, ended, done }: SignInProps) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(code !== null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [byCode, setByCode] = useState(false);

  const enter = async (credential: { code: string } | { token: string }) => {
    setBusy(true);
    setProblem(null);
    setByCode("code" in credential);
    try {
      done(await signIn(credential));
    } catch (error) {
      setProblem(error as Problem);
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Grainstore";
    if (code) void enter({ code });
  }, []);

  const refused = problem?.status === 401;
  return (
    <main class="signin" id="main">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h1>Grainstore</h1>
      <p class="dim">The console of a store of memory for agents.</p>
      {ended && !problem && !busy && <p class="notice" role="status">The session has ended. Sign in again to go on.</p>}
      {refused && byCode && (
        <div class="failure" role="alert">
          <p><strong>This address does not open the console any more.</strong></p>
          <p>Its code works once, within ten minutes. Start <code>grain serve</code> again for a new one, or paste a token.</p>
        </div>
      )}
      {refused && !byCode && (
        <div class="failure" role="alert">
          <p><strong>This token is not accepted.</strong></p>
          <p>It may be mistyped, withdrawn or past its end. A token begins with <code>gst_</code>.</p>
        </div>
      )}
      {problem && !refused && <Failure problem={problem} />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const text = token.trim();
          setToken("");
          if (text) void enter({ token: text });
        }}
      >
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="gst_…"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="first" disabled={busy || token.trim() === ""}>{busy ? "Signing in …" : "Sign in"}</button>
      </form>
      <p class="dim small-text">
        <code>grain serve</code> prints an address that signs in once. The token is sent to this server alone and kept
        nowhere in the browser.
      </p>
    </main>
  );
}
