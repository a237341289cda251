// The filters, and the list of what they let through.
import { useEffect, useState } from "preact/hooks";
import { remember, useKept } from "../kept";
import type { Json } from "../types";
import { count, plural, TYPES } from "../words";
import { type Question, useGrains } from "./grains";
import { List } from "./list";
import { Empty, Failure, Loading } from "./notice";

const NONE = {
  words: "", type: "", subject: "", relation: "", tag: "", user: "", namespace: "", from: "", to: "",
  sort: "newest", superseded: "",
};
type Filters = typeof NONE;

const DAY = 86_400_000;

export function questionOf(filters: Filters): Question {
  const where: { [name: string]: Json } = {};
  const set = (name: string, value: string) => {
    if (value !== "") where[name] = value;
  };
  set("type", filters.type);
  set("subject", filters.subject);
  set("relation", filters.relation);
  set("user_id", filters.user);
  set("namespace", filters.namespace);
  const tags = filters.tag.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
  if (tags.length > 0) where.tags_all = tags;
  const from = Date.parse(filters.from);
  const to = Date.parse(filters.to);
  if (Number.isFinite(from)) where.time_from = from;
  if (Number.isFinite(to)) where.time_to = to + DAY - 1;
  const question: Question = {};
  if (Object.keys(where).length > 0) question.where = where;
  if (filters.words.trim() !== "") question.text = filters.words;
  else if (filters.sort === "oldest") question.sort = "oldest";
  if (filters.superseded) question.include_superseded = true;
  return question;
}

export function FilterAsk() {
  const [filters, setFilters] = useKept<Filters>("find-filters", NONE);
  const [round, setRound] = useState(0);
  const { loaded, ask, more } = useGrains("find-loaded");

  const run = (of: Filters) => {
    remember("find-top", 0);
    remember("find-at", 0);
    setRound((n) => n + 1);
    ask(questionOf(of));
  };
  useEffect(() => {
    if (!loaded) ask(questionOf(filters));
  }, []);

  const field = (name: keyof Filters, label: string, extra: object = {}) => (
    <div class="field">
      <label for={`f-${name}`}>{label}</label>
      <input
        id={`f-${name}`}
        value={filters[name]}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setFilters({ ...filters, [name]: event.currentTarget.value })}
        {...extra}
      />
    </div>
  );
  const now = (name: keyof Filters, value: string) => {
    const next = { ...filters, [name]: value };
    setFilters(next);
    run(next);
  };
  const narrowed = JSON.stringify(filters) !== JSON.stringify(NONE);

  return (
    <>
      <form
        class="filters"
        role="search"
        aria-label="Filters"
        onSubmit={(event) => {
          event.preventDefault();
          run(filters);
        }}
      >
        {field("words", "Words", { type: "search", class: "words", placeholder: "any words of the grain" })}
        <div class="field">
          <label for="f-type">Type</label>
          <select id="f-type" value={filters.type} onChange={(event) => now("type", event.currentTarget.value)}>
            <option value="">all types</option>
            {TYPES.map((type) => <option value={type}>{type}</option>)}
          </select>
        </div>
        {field("subject", "Subject")}
        {field("relation", "Relation")}
        {field("tag", "Tags", { placeholder: "a, b: all of them" })}
        {field("user", "User")}
        {field("namespace", "Namespace")}
        {field("from", "From (UTC)", { type: "date" })}
        {field("to", "To (UTC)", { type: "date" })}
        <div class="field">
          <label for="f-sort">Order</label>
          <select
            id="f-sort"
            value={filters.words ? "best" : filters.sort}
            disabled={filters.words !== ""}
            onChange={(event) => now("sort", event.currentTarget.value)}
          >
            {filters.words && <option value="best">best first</option>}
            <option value="newest">newest first</option>
            <option value="oldest">oldest first</option>
          </select>
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={filters.superseded !== ""}
            onChange={(event) => now("superseded", event.currentTarget.checked ? "yes" : "")}
          />
          older versions too
        </label>
        <div class="buttons">
          <button type="submit" class="first">Find</button>
          {narrowed && (
            <button
              type="button"
              onClick={() => {
                setFilters(NONE);
                run(NONE);
              }}
            >
              Clear
            </button>
          )}
        </div>
      </form>
      <p class="count dim" role="status">
        {loaded && !loaded.problem && (loaded.rows.length > 0 || !loaded.busy) && (
          loaded.complete
            ? `${loaded.cursor === null ? "" : "the first "}${plural(loaded.rows.length, "grain")}`
            : `${count(loaded.rows.length)} read of ${loaded.total === null ? "many" : count(loaded.total)} grains${loaded.busy ? ", reading on …" : ""}`
        )}
      </p>
      {loaded?.problem && <Failure problem={loaded.problem} again={() => run(filters)} />}
      {(!loaded || (loaded.busy && loaded.rows.length === 0)) && <Loading what="grains" />}
      {loaded && loaded.rows.length > 0 && (
        <List key={round} name="find" label="Grains" rows={loaded.rows} complete={loaded.complete} more={more} />
      )}
      {loaded && !loaded.busy && !loaded.problem && loaded.rows.length === 0 && (
        <Empty>
          {narrowed
            ? <p>Nothing fits these filters. A subject, a relation and a user are compared whole; words are looked for.</p>
            : <p>There is nothing here that you may see. <code>grain add alice prefers tea</code> stores a first grain.</p>}
        </Empty>
      )}
    </>
  );
}
