// Routes by the hash. Only the name of a page and an address stand in it: what people type stays out of the
// browser's history.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  page: string;
  id: string;
}

export const PAGES = ["find", "replay", "audit", "privacy", "health"] as const;

export function parse(hash: string): Route {
  const [page = "", id = ""] = hash.replace(/^#\/?/, "").split("/");
  const known = [...PAGES, "grain", "history"] as string[];
  if (!known.includes(page)) return { page: page === "" ? "find" : "missing", id: "" };
  return { page, id: /^[0-9a-f]{64}$/.test(id) ? id : "" };
}

export const href = (page: string, id?: string): string => (id ? `#/${page}/${id}` : `#/${page}`);

export function go(page: string, id?: string): void {
  location.hash = href(page, id);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
