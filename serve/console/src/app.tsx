// The frame around the pages: who is signed in, where one can go, the keys.
import { useEffect, useState } from "preact/hooks";
import { onSignedOut, Problem, resume, signOut } from "./api";
import { forgetAll, remember } from "./kept";
import { type Shortcut, useShortcuts } from "./keys";
import { Audit } from "./pages/audit";
import { Find } from "./pages/find";
import { GrainPage } from "./pages/grain";
import { Health } from "./pages/health";
import { HistoryPage } from "./pages/history";
import { Privacy } from "./pages/privacy";
import { Replay } from "./pages/replay";
import { SignIn } from "./pages/signin";
import { Help } from "./parts/help";
import { Heading } from "./parts/heading";
import { Failure, Loading } from "./parts/notice";
import { go, href, type Route, useRoute } from "./router";
import { Text } from "./text";
import { currentTheme, toggleTheme } from "./theme";
import type { Access } from "./types";

function forgetSession(): void {
  forgetAll();
}

const PLACES: { page: string; name: string; key: string }[] = [
  { page: "find", name: "Find", key: "f" },
  { page: "replay", name: "Recall replay", key: "r" },
  { page: "audit", name: "Audit", key: "a" },
  { page: "privacy", name: "Privacy", key: "p" },
  { page: "health", name: "Health", key: "h" },
];

export function App({ code }: { code: string | null }) {
  const [access, setAccess] = useState<Access | null>(null);
  const [waiting, setWaiting] = useState(code === null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [ended, setEnded] = useState(false);

  useEffect(() => {
    onSignedOut(() => {
      forgetSession();
      setEnded(true);
      setAccess(null);
    });
    if (code !== null) return;
    resume()
      .then(setAccess, (error) => setProblem(error as Problem))
      .finally(() => setWaiting(false));
  }, []);

  if (waiting) return <main class="signin"><Loading what="the console" /></main>;
  if (problem) return <main class="signin"><h1>Grainstore</h1><Failure problem={problem} again={() => location.reload()} /></main>;
  if (!access) {
    return (
      <SignIn
        code={ended ? null : code}
        ended={ended}
        done={(next) => {
          setEnded(false);
          setAccess(next);
        }}
      />
    );
  }
  const leave = async () => {
    try {
      await signOut();
    } finally {
      forgetSession();
      setAccess(null);
      history.replaceState(null, "", location.pathname);
    }
  };
  return <Frame access={access} leave={() => void leave()} />;
}

function shown(route: Route, access: Access) {
  switch (route.page) {
    case "find": return <Find access={access} />;
    case "grain": return route.id ? <GrainPage key={route.id} address={route.id} access={access} /> : <Missing />;
    case "history": return route.id ? <HistoryPage key={route.id} address={route.id} /> : <Missing />;
    case "replay": return <Replay />;
    case "audit": return <Audit access={access} />;
    case "privacy": return <Privacy access={access} />;
    case "health": return <Health access={access} />;
    default: return <Missing />;
  }
}

const Missing = () => (
  <section class="page">
    <Heading title="No such page" />
    <p>The address leads nowhere. An address of a grain has 64 hex digits.</p>
    <p><a href={href("find")}>Find grains</a></p>
  </section>
);

function Frame({ access, leave }: { access: Access; leave: () => void }) {
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const [keysOn, setKeysOn] = useState(true);
  const [theme, setTheme] = useState(currentTheme);
  const turn = () => setTheme(toggleTheme());
  const focusSoon = (id: string) => setTimeout(() => document.getElementById(id)?.focus(), 30);
  const find = (mode: "filters" | "cal", id: string) => {
    remember("find-mode", mode);
    if (route.page !== "find") {
      go("find");
      focusSoon(id);
      return;
    }
    const name = mode === "cal" ? "CAL" : "Filters";
    [...document.querySelectorAll<HTMLButtonElement>(".tabs button")].find((one) => one.textContent === name)?.click();
    focusSoon(id);
  };
  const shortcuts: Shortcut[] = [
    { keys: "?", does: "show these keys", run: () => setHelp(true) },
    { keys: "/", does: "find by words", run: () => find("filters", "f-words") },
    { keys: "c", does: "ask in CAL", run: () => find("cal", "cal") },
    ...PLACES.map(({ page, name, key }) => ({ keys: `g ${key}`, does: `go to ${name}`, run: () => go(page) })),
    { keys: "b", does: "back", run: () => history.back() },
    { keys: "t", does: "light or dark", run: turn },
    { keys: "↑ ↓", does: "move in a list, also j and k" },
    { keys: "Enter", does: "open the marked grain" },
    { keys: "Ctrl+Enter", does: "run the statement" },
    { keys: "Esc", does: "close a list or a dialog" },
  ];
  useShortcuts(shortcuts, keysOn);

  const here = route.page === "grain" || route.page === "history" ? "find" : route.page;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="top">
        <span class="brand"><img src="/icon.svg" alt="" width="20" height="20" />Grainstore</span>
        <nav aria-label="Pages">
          {PLACES.map(({ page, name }) => (
            <a href={href(page)} aria-current={here === page ? "page" : undefined}>{name}</a>
          ))}
        </nav>
        <div class="who">
          <AccessInWords access={access} />
          <button type="button" class="small quiet" onClick={() => setHelp(true)} aria-label="Keys">?</button>
          <button type="button" class="small quiet" onClick={turn}>{theme === "dark" ? "Light" : "Dark"}</button>
          <button type="button" class="small quiet" onClick={leave}>Sign out</button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>{shown(route, access)}</main>
      {help && <Help shortcuts={shortcuts} on={keysOn} setOn={setKeysOn} close={() => setHelp(false)} />}
    </>
  );
}

function AccessInWords({ access }: { access: Access }) {
  const who = access.label || access.user_id || access.actor || (access.operator ? "operator" : "guest");
  return (
    <span class="access" title={access.expires_at ? `until ${new Date(access.expires_at).toISOString()}` : undefined}>
      <Text of={who} max={40} />
      <span class="dim">
        {access.operator ? " operator" : ""}{access.tier === 1 ? "" : " reads only"}
        {access.namespace && <> in <Text of={access.namespace} max={40} /></>}
      </span>
    </span>
  );
}
