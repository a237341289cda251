// The ten journeys through the console, the faces of its pages, and a list of 100,000 rows.
// By itself it starts `grain serve` over the week of the demo. Against a server that runs: GRAINSTORE_URL, with
// GRAINSTORE_TOKEN (an operator's, tier 1), GRAINSTORE_TOKEN_READER (tier 0) and GRAINSTORE_CODE (one-time).
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { accessible, call, find, go, openPage, shot, signIn, startBrowser, startServer } from "./harness.mjs";

let server;
let browser;
before(async () => {
  server = await startServer();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** A journey in a page of its own; at its end nothing forbidden may have happened. */
const journey = (name, walk, options = {}) =>
  test(name, async () => {
    const opened = await openPage(browser, server, options);
    try {
      await walk(opened.page, opened);
      await opened.clean();
    } finally {
      await opened.close();
    }
  });

journey("sign in by the one-time code, and out again", async (page) => {
  await page.goto(`${server.url}/`);
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await shot(page, "sign-in");
  await accessible(page, "sign in");
  await page.getByLabel("Token").fill("gst_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "not accepted" }).waitFor();
  if (server.code) {
    await page.goto("about:blank");
    await page.goto(`${server.url}/#code=${server.code}`);
    await page.getByRole("heading", { name: "Find" }).waitFor();
    assert.ok(!page.url().includes("code="), "the code leaves the address");
    await page.reload();
    await page.getByRole("heading", { name: "Find" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    // Pasted over the open page, which changes nothing but the hash.
    await page.goto(`${server.url}/#code=${server.code}`);
    await page.getByRole("alert").filter({ hasText: "works once" }).waitFor();
    assert.ok(!page.url().includes("code="));
  }
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.ok(!/gst_|csrf|code/.test(stored), "nothing secret is kept");
});

journey("find by filters, and in CAL with completion", async (page) => {
  await signIn(page, server);
  await page.getByRole("listbox", { name: "Grains" }).waitFor();
  await shot(page, "find");
  await page.getByLabel("Type").selectOption("goal");
  await page.locator('.row .kind[data-type="goal"]').first().waitFor();
  assert.equal(await page.locator('.row .kind:not([data-type="goal"])').count(), 0);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Words").fill("nickel tools");
  await page.getByLabel("Words").press("Enter");
  await page.locator(".row").filter({ hasText: "nickel" }).first().waitFor();
  await page.getByLabel("Words").fill("xyzzyplugh");
  await page.getByLabel("Words").press("Enter");
  await page.getByText("Nothing fits these filters").waitFor();

  await page.getByRole("button", { name: "CAL", exact: true }).click();
  const box = page.getByLabel("Statement of CAL");
  await box.pressSequentially("REC");
  await page.getByRole("option", { name: "RECALL" }).waitFor();
  await page.keyboard.press("Tab");
  assert.match(await box.inputValue(), /^RECALL ?$/);
  await box.fill("RECALL ");
  await box.pressSequentially("bel");
  await page.getByRole("option", { name: "beliefs" }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#cal-offer").count(), 0);
  await box.fill('RECALL beliefs ABOUT "');
  await box.pressSequentially("Cl");
  await page.getByRole("option", { name: /Clementine/ }).first().waitFor();
  await shot(page, "cal");
  await accessible(page, "completion");
  await page.keyboard.press("Enter");
  if (!(await box.inputValue()).endsWith('"')) await box.press('"');
  await page.keyboard.press("Control+Enter");
  await page.locator(".row").filter({ hasText: "Clementine" }).first().waitFor();

  await box.fill('RECALL beliefs WHERE subject = "été 😀" AND subjet = "x"');
  await page.keyboard.press("Control+Enter");
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.equal(await alert.locator("mark").textContent(), "subjet", "the place is shown behind signs of many bytes");
  await shot(page, "cal-error");
  await accessible(page, "an error of CAL");
  await page.getByRole("button", { name: "Use this" }).click();
  await page.getByText("Nothing fits this statement").waitFor();
  await box.fill("RECALL beliefs | GROUP BY relation");
  await page.keyboard.press("Control+Enter");
  await page.getByText("prefers").first().waitFor();
  await box.fill('ADD belief SET subject = "console" SET relation = "tests" SET object = "writing" REASON "a journey"');
  await page.keyboard.press("Control+Enter");
  await page.getByRole("dialog", { name: "This statement writes" }).waitFor();
  await accessible(page, "a statement that writes");
  await page.getByRole("button", { name: "Write it" }).click();
  await page.getByText("content_address").waitFor();
});

journey("open a grain, read its policy, be refused", async (page) => {
  const address = await find(server, { subject: "donors list", relation: "mg:prohibits" });
  await signIn(page, server);
  await go(page, `grain/${address}`);
  await page.getByText("Nobody may replace it.").waitFor();
  await page.getByText("it protects every version of this grain").waitFor();
  await page.getByRole("heading", { name: "Comes from" }).waitFor();
  await page.getByText("Not signed").waitFor();
  await shot(page, "grain");
  await page.getByRole("button", { name: "Contradict …" }).click();
  await page.getByLabel("Reason").fill("a journey");
  await page.getByRole("button", { name: "Contradict", exact: true }).click();
  await page.getByRole("alert").filter({ hasText: "ERR_INVALIDATION_DENIED" }).waitFor();
  await accessible(page, "a refused action");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  // What is open to anyone can be held, replaced and erased.
  const made = await call(server, "POST", "/v1/grains", {
    grain: { type: "belief", subject: "console", relation: "opens", object: "a grain", confidence: 0.5, created_at: Date.now() - 5000 },
  });
  await go(page, `grain/${made.answer.address}`);
  await page.getByText("Anyone may replace it.").waitFor();
  await page.getByRole("button", { name: "Hold …" }).click();
  await page.getByLabel("Reason").fill("case 7");
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  await page.getByText("A litigation hold").waitFor();
  await page.getByRole("button", { name: "Lift the hold …" }).click();
  await page.getByLabel("Reason").fill("settled");
  await page.getByRole("button", { name: "Lift", exact: true }).click();
  await page.getByRole("button", { name: "Hold …" }).waitFor();
  await page.getByRole("button", { name: "Replace …" }).click();
  const draft = page.getByLabel("New grain, in JSON");
  await draft.fill((await draft.inputValue()).replace("a grain", "a newer grain"));
  await page.getByLabel("Why it is replaced").fill("a journey");
  await page.getByRole("button", { name: "Replace", exact: true }).click();
  await page.locator(".lead").filter({ hasText: "a newer grain" }).waitFor();
  const newer = page.url().slice(-64);
  await page.getByRole("button", { name: "Erase …" }).click();
  await page.getByLabel("Reason").fill("a journey");
  await page.getByRole("button", { name: "See what would go" }).click();
  await page.getByText("would take 1 grain").waitFor();
  const erase = page.getByRole("button", { name: "Erase for good" });
  assert.ok(await erase.isDisabled(), "nothing is erased without the typed address");
  await page.getByLabel("To erase, type").fill(newer.slice(0, 8));
  await accessible(page, "an erasure");
  await erase.click();
  await page.getByRole("heading", { name: "Erased" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("alert").filter({ hasText: /ERR_ERASED|ERR_NOT_FOUND/ }).waitFor();
});

// alice prefers tea, signed by a key that was made for this test.
const SIGNED =
  "0oRYW6MBJwN4GmFwcGxpY2F0aW9uL3ZuZC5tZyttc2dwYWNrBFg4ZGlkOmtleTp6Nk1rZWhSZ2Y3eUpiZ2FHZllzZG9Bc0tkQlBF" +
  "M2RqMkNZaG93UWRjanFTSmd2VmShY2lhdBpniIRAWJ8BAQGk0mlouqCJpGFkaWTZOGRpZDprZXk6ejZNa2hhWGdCWkR2b3REa0w1" +
  "MjU3ZmFpenRpR2lDMlF0S0xHcGJubkVHdGEyZG9LoWPLP+zMzMzMzM2iY2HPAAABm8EZAQCibnOmc2hhcmVkoW+pZGFyayBtb2Rl" +
  "oXKncHJlZmVyc6FzpHVzZXKic3StdXNlcl9leHBsaWNpdKF0pGZhY3RYQPnVfLR9ImwQG6Xo2KJ+1mbcq/e0zZXxCcWgzJtl85Cf" +
  "d8JH+vqKh8V5GRqETVpAKYAzdBlSxTom8MH7Khkk3go=";

journey("signatures and other policies are told in words", async (page) => {
  const put = async (body) => {
    const { status, answer } = await call(server, "POST", "/v1/grains", body);
    assert.ok(status < 300, JSON.stringify(answer));
    return answer.address;
  };
  const signed = await put({ cose: SIGNED });
  const did = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
  const quorum = await put({
    grain: {
      type: "belief", subject: "console", relation: "asks", object: "two of three", confidence: 1, created_at: Date.now() - 9000,
      invalidation_policy: { mode: "quorum", threshold: 1, authorized: [did], scope: "grain" },
    },
  });
  await signIn(page, server);
  await go(page, `grain/${signed}`);
  await page.getByText("The signature is over these bytes.").waitFor();
  await page.getByText(did).first().waitFor();
  await page.getByRole("button", { name: "Save the envelope" }).waitFor();
  await go(page, `grain/${quorum}`);
  await page.getByText("A number of the named signers may replace it together.").waitFor();
  await page.locator("[data-policy=quorum] code").filter({ hasText: did }).waitFor();
  await accessible(page, "a quorum");
});

journey("the timeline tells what was believed", async (page) => {
  const address = await find(server, { subject: "open day", relation: "seats" });
  await signIn(page, server);
  await go(page, `grain/${address}`);
  await page.getByRole("link", { name: "Its history on a timeline" }).click();
  const believed = page.locator(".believed");
  await believed.filter({ hasText: "64 chairs" }).waitFor();
  await page.getByRole("button", { name: "Change before" }).click();
  await page.getByRole("button", { name: "Change before" }).click();
  await believed.filter({ hasText: "80 chairs" }).waitFor();
  await shot(page, "history");
  const slider = page.getByLabel("As of");
  await slider.focus();
  await page.keyboard.press("End");
  await believed.filter({ hasText: "64 chairs" }).waitFor();
  await page.keyboard.press("Home");
  await believed.filter({ hasText: "80 chairs" }).waitFor();
  await page.locator("summary").first().click();
  await page.getByText("fire inspection limits the room").waitFor();
  await accessible(page, "history");
});

journey("a recall is replayed", async (page) => {
  await signIn(page, server);
  await go(page, "replay");
  await page.getByLabel("Question").fill('what must I know of "Clementine" and \\ the bellows');
  await page.getByLabel("Budget in tokens").fill("200");
  await page.getByRole("button", { name: "Replay" }).click();
  await page.locator("tr.in").first().waitFor();
  assert.ok((await page.locator("tr.out").count()) > 0, "some are left out");
  await page.locator("tr.out").filter({ hasText: "No room:" }).first().waitFor();
  await page.getByText(/^\d+ of 200 tokens$/).waitFor();
  assert.match(await page.locator("tr.in").first().textContent(), /Clementine|bellows|know/i, "the table says what each grain says");
  assert.match(await page.getByRole("region", { name: "Text for the model" }).textContent(), /^<context intent=/);
  await shot(page, "replay");
  await accessible(page, "replay");
});

journey("the audit log shows a refusal, follows, and is checked", async (page) => {
  await signIn(page, server);
  await go(page, "audit");
  await page.locator('[data-link="live"]').waitFor();
  await page.getByRole("button", { name: "Check the chain" }).click();
  await page.getByText("The chain holds").waitFor();
  const locked = await find(server, { subject: "donors list", relation: "mg:prohibits" });
  const refused = await call(server, "POST", `/v1/grains/${locked}/contradict`, { reason: "a journey of the audit" });
  assert.equal(refused.status, 403);
  const row = page.locator("tr.refused").first();
  await row.filter({ hasText: "nothing may invalidate it" }).waitFor();
  await shot(page, "audit");
  await accessible(page, "audit");
  await page.getByLabel("Decision").selectOption("refused");
  await page.locator("tr.refused").first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll("table.audit tbody tr:not(.refused)").length === 0);
  await page.getByLabel("Decision").selectOption("");
  await page.waitForFunction(() => document.querySelectorAll("table.audit tbody tr:not(.refused)").length > 0);
  const newest = Number(await page.locator("tr[data-sequence]").first().getAttribute("data-sequence"));
  await page.getByRole("button", { name: "Older" }).click();
  await page.waitForFunction((top) => Number(document.querySelector("tr[data-sequence]")?.getAttribute("data-sequence")) < top - 40, newest);
  await page.getByRole("button", { name: "Newer" }).click();
  const other = page.locator("td.actor button").filter({ hasNotText: "operator" }).first();
  const name = (await other.textContent()).replace("…", "");
  await other.click();
  await page.waitForFunction((of) => {
    const all = [...document.querySelectorAll("td.actor")];
    return all.length > 0 && all.every((cell) => cell.textContent.startsWith(of));
  }, name);
  await page.getByRole("button", { name: "Reads" }).click();
  await page.getByLabel("Actor").fill("");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.locator("tr[data-sequence]").filter({ hasText: "cal" }).first().waitFor();
});

journey("a person: what is known, what would go, and erased", async (page) => {
  const user = `person-${Date.now()}`;
  for (const object of ["tea", "coffee", "water"]) {
    const { status } = await call(server, "POST", "/v1/grains", {
      grain: { type: "belief", subject: user, relation: "drinks", object, confidence: 0.9, created_at: Date.now() - 1000, user_id: user },
    });
    assert.ok(status < 300);
  }
  await signIn(page, server);
  await go(page, "privacy");
  await page.locator("#person").fill("marisol");
  await page.getByRole("button", { name: "What is known" }).click();
  await page.getByRole("heading", { name: "Known of marisol" }).waitFor();
  await page.getByRole("button", { name: /^Show the/ }).click();
  await page.getByRole("listbox", { name: "Grains of this person" }).waitFor();
  await shot(page, "privacy");
  await accessible(page, "privacy");

  await page.locator("#person").fill(user);
  await page.getByRole("button", { name: "What is known" }).click();
  await page.getByRole("heading", { name: `Known of ${user}` }).waitFor();
  await page.getByLabel("Reason").fill("they asked for it");
  await page.getByRole("button", { name: "See what would go" }).click();
  await page.getByText("would take 3 grains").waitFor();
  const erase = page.getByRole("button", { name: "Erase for good" });
  await page.getByLabel("To erase, type").fill("somebody else");
  assert.ok(await erase.isDisabled());
  await page.getByLabel("To erase, type").fill(user);
  await erase.click();
  await page.getByRole("heading", { name: "Erased" }).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save the certificate" }).click(),
  ]);
  const certificate = JSON.parse(await readFile(await download.path(), "utf8"));
  assert.equal(typeof certificate.sequence, "number");
  assert.match(certificate.hash, /^[0-9a-f]{64}$/);
  await shot(page, "certificate");
  await accessible(page, "a certificate");
  await page.getByRole("button", { name: "What is known" }).click();
  await page.getByText("nothing of this person").waitFor();
  assert.ok(!page.url().includes(user), "no name stands in the address");
});

journey("health, and what a reader is not shown", async (page) => {
  await signIn(page, server);
  await go(page, "health");
  await page.getByRole("heading", { name: "Findings" }).waitFor();
  await page.getByText("sound").first().waitFor();
  await page.getByRole("img", { name: /^Requests/ }).waitFor();
  await page.getByRole("heading", { name: "On the disk" }).waitFor();
  await shot(page, "health");
  await accessible(page, "health");
  if (!server.reader) return;
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, server, server.reader);
  await go(page, "health");
  await page.getByText("shown to the operator").waitFor();
  await go(page, "audit");
  await page.locator("tr[data-sequence]").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Check the chain" }).count(), 0);
  const address = await find(server, { subject: "Clementine" });
  await go(page, `grain/${address}`);
  await page.getByText("This session reads only.").waitFor();
});

journey("by keys alone: find, a grain, and back", async (page) => {
  await page.goto(`${server.url}/`);
  await page.getByLabel("Token").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.insertText(server.token);
  await page.keyboard.press("Enter");
  await page.getByRole("listbox", { name: "Grains" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1", "the focus is on the heading");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await shot(page, "keys");
  await accessible(page, "keys");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.waitForFunction(() => document.activeElement?.id === "f-words");
  await page.keyboard.insertText("Clementine");
  await page.keyboard.press("Enter");
  await page.locator(".row").filter({ hasText: "Clementine" }).first().waitFor();
  for (let step = 0; step < 20; step += 1) {
    if (await page.evaluate(() => document.activeElement?.getAttribute("role") === "listbox")) break;
    await page.keyboard.press("Tab");
  }
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("role")), "listbox");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("j");
  const marked = await page.evaluate(() => document.activeElement?.getAttribute("aria-activedescendant"));
  assert.equal(marked, "find-2");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^Grain [0-9a-f]{12}$/ }).waitFor();
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /^Grain /);
  await page.keyboard.press("b");
  await page.getByRole("heading", { name: "Find" }).waitFor();
  await page.locator(".row.here#find-2").waitFor();
  assert.equal(await page.getByLabel("Words").inputValue(), "Clementine", "the filters are still there");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.getByRole("heading", { name: "Health" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
});

// Each page, with what is there once its answer is.
const faces = (address) => [
  ["find", ".row"],
  ["replay", ".empty"],
  ["audit", "tr[data-sequence]"],
  ["privacy", ".empty"],
  ["health", ".charts"],
  [`grain/${address}`, "[data-policy]"],
  [`history/${address}`, ".believed"],
];

async function face(page, hash, there) {
  await go(page, hash);
  await page.locator(there).first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".spinner").length === 0);
}

journey("a narrow screen has no sideways scroll", async (page) => {
  const address = await find(server, { subject: "open day", relation: "seats" });
  await signIn(page, server);
  for (const [hash, there] of faces(address)) {
    await face(page, hash, there);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `${hash} is ${beyond} px too wide`);
    await accessible(page, `${hash}, narrow`);
    if (hash === "find") await shot(page, "narrow");
  }
}, { width: 390, height: 780 });

const SIGNS = "\u202e\u2066\u200b\u0007";
const EVIL = {
  subject: `<script>alert(1)</script>${SIGNS}exe.doc`,
  object: '<img src="https://example.invalid/x.png" onerror="alert(2)"> {{7*7}} ${alert(3)} <%= 7*7 %> javascript:alert(4)',
  namespace: "<b>evil</b>",
  tags: ['<svg onload="alert(5)">', "a\u202eb"],
  user: '"><iframe srcdoc="<script>alert(6)</script>">',
};

journey("a hostile grain is shown as text, and nothing of it runs", async (page) => {
  const put = (grain) => call(server, "POST", "/v1/grains", { grain: { created_at: Date.now() - 2000, namespace: EVIL.namespace, structural_tags: EVIL.tags, user_id: EVIL.user, ...grain } });
  const belief = await put({ type: "belief", subject: EVIL.subject, relation: "prefers", object: EVIL.object, confidence: 0.9 });
  assert.ok(belief.status < 300, JSON.stringify(belief.answer));
  const event = await put({ type: "event", content: EVIL.object, role: EVIL.subject });
  assert.ok(event.status < 300, JSON.stringify(event.answer));
  await signIn(page, server);
  await page.getByLabel("Namespace").fill(EVIL.namespace);
  await page.getByLabel("Namespace").press("Enter");
  const row = page.locator(".row").filter({ hasText: "<script>alert(1)</script>" }).first();
  await row.waitFor();
  await row.getByText("U+202E").waitFor();
  assert.equal(await row.locator("bdi").first().evaluate((element) => getComputedStyle(element).unicodeBidi), "isolate");
  await go(page, `grain/${belief.answer.address}`);
  await page.getByText("{{7*7}}").first().waitFor();
  await page.getByText("U+0007").first().waitFor();
  await shot(page, "hostile");
  await accessible(page, "a hostile grain");
  await go(page, `grain/${event.answer.address}`);
  await page.getByText("<script>alert(1)</script>").first().waitFor();
  await go(page, `history/${belief.answer.address}`);
  await page.locator(".believed").filter({ hasText: "<script>" }).waitFor();
  await go(page, "privacy");
  await page.locator("#person").fill(EVIL.user);
  await page.getByRole("button", { name: "What is known" }).click();
  await page.getByRole("heading", { name: /Known of/ }).filter({ hasText: "<iframe" }).waitFor();
  await page.getByRole("button", { name: /^Show the/ }).click();
  await page.locator("#person-0").waitFor();
  await go(page, "replay");
  await page.getByLabel("Question").fill("alert");
  await page.getByRole("button", { name: "Replay" }).click();
  await page.locator("table.candidates").getByText("<script>alert(1)</script>").first().waitFor();

  // Whatever a server says in an error is text as well.
  await page.route("**/v1/cal", (route) =>
    route.fulfill({
      status: 422,
      contentType: "application/problem+json",
      body: JSON.stringify({
        title: "<b>x</b>", status: 422, code: "<i>CAL</i>", detail: `<script>alert(7)</script>${SIGNS}`,
        suggestion: '<img src=x onerror="alert(8)">', example: "<svg onload=alert(9)>", position: { start: 0, end: 3, line: 1, col: 1 },
      }),
    }));
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByRole("alert").getByText("<script>alert(7)</script>").waitFor();
  await page.evaluate(() => new Promise((idle) => requestIdleCallback(idle)));
  const made = await page.evaluate(() => document.querySelectorAll("#app script, #app iframe, #app svg[onload], img:not([src='/icon.svg'])").length);
  assert.equal(made, 0, "no element came out of data");
});

journey("a session that ends, and a server that is gone, are told", async (page) => {
  await signIn(page, server);
  await page.route("**/v1/query", (route) => route.abort());
  await page.getByRole("button", { name: "Find", exact: true }).click();
  await page.getByRole("alert").filter({ hasText: "cannot be reached" }).waitFor();
  await page.unroute("**/v1/query");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".row").first().waitFor();
  const refuse = (status, code, headers = {}) => (route) =>
    route.fulfill({ status, headers, contentType: "application/problem+json", body: JSON.stringify({ status, code, detail: "not now" }) });
  await page.route("**/v1/query", refuse(429, "ERR_BUSY", { "retry-after": "7" }));
  await page.getByRole("button", { name: "Find", exact: true }).click();
  await page.getByText("Try again in 7 seconds").waitFor();
  await accessible(page, "a failure");
  await page.unroute("**/v1/query");
  await page.route("**/v1/query", refuse(401, "ERR_ACCESS"));
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The session has ended").waitFor();
  await page.unroute("**/v1/query");
  await page.getByLabel("Token").fill(server.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".row").first().waitFor();
  assert.equal(await page.getByLabel("Words").inputValue(), "", "nothing of the session before is left");
});

journey("a grain of hidden signs alone does not stop the page", async (page) => {
  const { answer, status } = await call(server, "POST", "/v1/grains", {
    grain: { type: "event", role: "user", content: "\u200b\u200c".repeat(120_000), created_at: Date.now() - 1000 },
  });
  assert.ok(status < 300, JSON.stringify(answer));
  await signIn(page, server);
  await go(page, `grain/${answer.address}`);
  await page.locator("[data-policy]").waitFor();
  await page.locator(".fields .sign").first().waitFor();
  assert.ok((await page.locator(".sign").count()) < 3000);
});

for (const scheme of ["light", "dark"]) {
  journey(`every page is accessible, ${scheme}`, async (page) => {
    await page.goto(`${server.url}/`);
    await page.getByLabel("Token").waitFor();
    await accessible(page, `sign in, ${scheme}`);
    const address = await find(server, { subject: "open day", relation: "seats" });
    await signIn(page, server);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
    for (const [hash, there] of [...faces(address), ["grain/nothing", "main a"]]) {
      await face(page, hash, there);
      await accessible(page, hash);
      if (scheme === "dark" && hash === `grain/${address}`) await shot(page, "grain-dark");
    }
    await page.getByRole("button", { name: scheme === "dark" ? "Light" : "Dark" }).click();
    assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
  }, { scheme });
}

journey("100,000 rows scroll without a stutter", async (page) => {
  const ROWS = 100_000;
  await page.route("**/v1/query", async (route) => {
    const { limit, cursor } = route.request().postDataJSON();
    const from = Number(cursor ?? 0);
    const to = Math.min(ROWS, from + limit);
    const results = [];
    for (let index = from; index < to; index += 1) {
      results.push({
        content_address: index.toString(16).padStart(64, "0"), score: 1, matched_fields: [],
        grain: { type: "belief", subject: `subject ${index}`, relation: "counts_to", object: `row ${index} of many`, created_at: 1773396152461 - index },
      });
    }
    await route.fulfill({ json: { results, total: null, next_cursor: to < ROWS ? String(to) : null } });
  });
  await signIn(page, server);
  await page.locator(".row").first().waitFor();
  const measured = await page.evaluate(async (all) => {
    const list = document.querySelector(".list");
    const frames = [];
    let most = 0;
    let last = performance.now();
    const began = last;
    let jump = 0;
    while (performance.now() - began < 120_000) {
      // The last jump before it is complete goes to the end, again and again; then up and down through all of it.
      list.scrollTop = list.scrollHeight;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
      most = Math.max(most, document.querySelectorAll(".row").length);
      const room = document.querySelector(".list-room").clientHeight;
      if (room >= all * 34) break;
    }
    for (; jump < 200; jump += 1) {
      list.scrollTop = (list.scrollHeight * ((jump * 37) % 100)) / 100;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
      most = Math.max(most, document.querySelectorAll(".row").length);
    }
    list.scrollTop = list.scrollHeight;
    await new Promise((resolve) => setTimeout(resolve, 200));
    frames.sort((a, b) => a - b);
    return {
      most, rows: Math.round(document.querySelector(".list-room").clientHeight / 34), lastRow: [...document.querySelectorAll(".row")].at(-1)?.textContent,
      median: frames[Math.floor(frames.length / 2)], p99: frames[Math.floor(frames.length * 0.99)], seconds: (performance.now() - began) / 1000,
    };
  }, ROWS);
  console.log("# rows", JSON.stringify(measured));
  assert.equal(measured.rows, ROWS);
  assert.match(measured.lastRow, /row 99999 of many/);
  assert.ok(measured.most < 80, `${measured.most} rows in the page`);
});


