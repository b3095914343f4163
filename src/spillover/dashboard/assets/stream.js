// The page of one stream: read everything, show it, and read again whenever the stream has new entries.

import { actions } from "./act.js";
import { get, inWords, path, Problem, Unreachable } from "./api.js";
import { corrections } from "./correct.js";
import { executionCorrections } from "./correct_execution.js";
import { renderDecision, warningsOf } from "./decision.js";
import { byId, h, named, replace, show } from "./dom.js";
import { redrawGraph, renderGraph } from "./graph.js";
import { follow, untilReady } from "./live.js";
import { logOf } from "./log.js";
import { renderPending } from "./pending.js";
import { renderSettings, settingsForm } from "./settings.js";
import { redrawTrends, renderTrends } from "./trends.js";
import { count, following } from "./words.js";

const stream = byId("stream-name").dataset.stream;
const SLOW = 400; // milliseconds before the page says that it is still reading
const SIGNALS = 5; // health signals that are shown before somebody asks for all
const NEXT = ""; // stands for the coming round in the switch
let overview = null;
let shown = null; // the round that is looked at; null: not chosen by the person
let focusing = false; // whether the focus goes to the decision as soon as it is shown
let refreshing = null;
let again = false;

const context = {
  stream,
  overview: () => overview,
  refresh,
  roundNow: async (round) => (await get(path("streams", stream, "state"), { round })).rounds[0],
  correct: (...what) => correct(...what),
  correctExecution: (round) => correctExecution(round),
};
const correct = corrections(context);
const correctExecution = executionCorrections(context);
const log = logOf(context);
const act = actions(stream, async (round) => {
  shown = round;
  focusing = true;
  await refresh();
});
settingsForm(context);
for (const title of document.querySelectorAll("h2")) title.tabIndex = -1;

/** Read and show all; calls while it runs lead to one more run. */
function refresh() {
  if (refreshing) {
    again = true;
    return refreshing;
  }
  refreshing = readAll().finally(() => {
    refreshing = null;
    if (again) {
      again = false;
      return refresh();
    }
    return null;
  });
  return refreshing;
}

async function readAll() {
  try {
    const [fresh, outlook] = await Promise.all([
      get(path("streams", stream)),
      get(path("streams", stream, "outlook")).catch(asWords),
    ]);
    const first = overview === null;
    overview = fresh;
    if (first) act.prepare(overview.settings);
    show(byId("missing"), false);
    show(byId("whole"), true);
    await showDecision(outlook);
    renderPending(context, overview);
    for (const report of document.querySelectorAll("details.report[open]")) report.dispatchEvent(new Event("refresh"));
    renderSettings(overview.settings, outlook.policy);
    if (!outlook.failed) renderGraph(outlook);
    await log.refresh(overview.seq);
    renderTrends(overview, outlook.failed ? null : outlook, await courseOf());
    if (first && location.hash)
      document.querySelector(CSS.escape ? `#${CSS.escape(location.hash.slice(1))}` : "main")?.scrollIntoView();
  } catch (error) {
    if (!(error instanceof Unreachable)) missing(error);
  }
}

/** How the estimates moved over rounds that were not decided here; null where decisions tell it. */
async function courseOf() {
  const decided = overview.rounds.filter((line) => line.seq !== null).length;
  if (decided > 1 || overview.rounds.length < 2) return null;
  return get(path("streams", stream, "course")).catch(() => null);
}

function asWords(error) {
  if (error instanceof Unreachable || (error instanceof Problem && error.status === 404)) throw error;
  return { failed: inWords(error) };
}

function missing(error) {
  replace(byId("missing"), inWords(error), " ", h("a", { href: "/" }, "All streams"));
  show(byId("missing"), true);
  show(byId("whole"), overview !== null);
}

/** The decision to look at: one that waits for its execution, or the coming round. */
async function showDecision(outlook) {
  const open = overview.rounds.filter((line) => line.status === "issued").map((line) => line.round);
  const now = shown !== null && (shown === NEXT || open.includes(shown)) ? shown : (open[0] ?? NEXT);
  drawSwitch(open, now);
  const box = byId("decision");
  const coming = comingRound(outlook);
  const answer =
    now === NEXT
      ? outlook.failed
        ? outlook
        : { ...outlook, round: coming || null }
      : await get(path("streams", stream, "decisions", now));
  const label = byId("decide-title");
  replace(label, now === NEXT ? "What to choose next" : "A decision waits to be carried out");
  if (answer.failed)
    replace(
      box,
      h("p", { class: "notice" }, "What would be chosen cannot be shown before the round is decided. ", answer.failed),
    );
  else
    renderDecision(box, answer, {
      state: now === NEXT ? "a preview: nothing is recorded" : "decided: waits for what was done",
    });
  act.suggest(coming);
  act.turnTo(now === NEXT ? null : now, answer.choose ?? []);
  health(outlook.failed ? [] : warningsOf(outlook));
  if (focusing && (shown === null || shown === now)) {
    focusing = false;
    box.querySelector(".statement")?.focus();
  }
}

/** The round to decide next. A cancelled or given-up round is not part of the history, so `next` may name it again. */
function comingRound(outlook) {
  const known = overview.rounds.map((line) => line.round);
  return outlook.round && !known.includes(outlook.round) ? outlook.round : following(known);
}

function drawSwitch(open, now) {
  const box = byId("switch");
  show(box, open.length > 0);
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.round : null;
  replace(
    box,
    [...open, NEXT].map((round) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(round === now),
          "data-round": round,
          click: () => {
            shown = round;
            refresh();
          },
        },
        round === NEXT ? "The next round" : ["Round ", named(round)],
      ),
    ),
  );
  if (focused !== null) box.querySelector(`[data-round="${CSS.escape(focused)}"]`)?.focus();
}

function health(warnings) {
  const late = overview.counts.late;
  const sentences = [...warnings];
  if (late)
    sentences.unshift(
      h(
        "span",
        {},
        `${count(late, "round")} ${late === 1 ? "waits" : "wait"} longer for outcomes than 9 of 10 did. `,
        h("a", { href: "#pending" }, "See which"),
      ),
    );
  const [first, rest] = [sentences.slice(0, SIGNALS), sentences.slice(SIGNALS)];
  const line = (sentence) => h("li", {}, sentence);
  show(byId("health"), sentences.length > 0);
  replace(byId("health-list"), first.map(line));
  show(byId("health-more"), rest.length > 0);
  replace(byId("health-count"), `${count(rest.length, "more signal")}`);
  replace(byId("health-rest"), rest.map(line));
}

replace(byId("stream-name"), named(stream));
const redraw = () => {
  redrawTrends();
  redrawGraph();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let width = innerWidth;
let timer = null;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(timer);
  timer = setTimeout(redraw, 150);
});

untilReady();
const slow = setTimeout(() => show(byId("reading"), overview === null), SLOW);
await refresh();
clearTimeout(slow);
show(byId("reading"), false);
if (overview)
  follow(path("streams", stream, "changes"), (seq) => {
    if (!overview || seq !== overview.seq) refresh();
  });
