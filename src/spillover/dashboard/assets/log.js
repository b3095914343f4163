// The log: every entry as a sentence, the latest first; decisions with their reasons as they were then.

import { get, inWords, path } from "./api.js";
import { renderDecision } from "./decision.js";
import { byId, h, keepChildren, named, namedList, replace, show } from "./dom.js";
import { capital, count, moment, short } from "./words.js";

const PAGE = 40;

/** The log of a stream; returns refresh(seq), which takes in new entries. */
export function logOf(context) {
  let [entries, first] = [[], null];
  const read = async (after, limit) => (await get(path("streams", context.stream, "events"), { after, limit })).events;
  const draw = () => {
    const words = byId("log-search").value.trim().toLowerCase();
    const fitting = entries.filter(
      (entry) =>
        !words ||
        JSON.stringify(entry.event).toLowerCase().includes(words) ||
        entry.author.toLowerCase().includes(words),
    );
    keepChildren(
      byId("entries"),
      fitting,
      (entry) => entry.seq,
      (entry) => entryLine(context, entry),
    );
    show(byId("log-more"), first > 1);
  };
  const earlier = async () => {
    const from = Math.max(0, first - 1 - PAGE);
    entries = [...entries, ...(await read(from, first - 1 - from)).reverse()];
    first = from + 1;
    draw();
  };
  byId("log-more").addEventListener("click", () =>
    earlier().catch((error) => replace(byId("log-words"), inWords(error))),
  );
  byId("log-search").addEventListener("input", draw);
  return {
    async refresh(seq) {
      const known = entries.length ? entries[0].seq : Math.max(0, seq - PAGE);
      if (seq <= known) return;
      first ??= known + 1;
      const fresh = seq - known > 1000 ? [] : await read(known, seq - known);
      entries = [...fresh.reverse(), ...entries];
      draw();
    },
  };
}

function entryLine(context, entry) {
  const { event, kind } = entry;
  const words = SENTENCES[kind]?.(event, context) ?? [capital(kind.replaceAll("-", " ")), "."];
  return h(
    "li",
    { class: `entry ${kind}` },
    h(
      "p",
      { class: "entry-head" },
      h("span", { class: "seq" }, `#${entry.seq}`),
      h("time", { datetime: entry.time }, moment(entry.time)),
      entry.author && h("span", { class: "author" }, "by ", named(entry.author)),
    ),
    h("div", { class: "entry-words" }, words),
  );
}

const SENTENCES = {
  "stream-created": (event) => [
    h(
      "p",
      {},
      h("strong", {}, "Stream created"),
      ` with ${count(event.settings.arms.length, "arm")}, at most ${event.settings.budget} in a round.`,
    ),
  ],
  "settings-changed": (event) => [
    h(
      "p",
      {},
      h("strong", {}, "Settings changed"),
      `: at most ${count(event.settings.budget, "arm")} in a round, policy ${event.settings.policy ?? "recommended"}.`,
    ),
  ],
  "decision-issued": (event, context) => [
    h(
      "p",
      {},
      h("strong", {}, "Decided"),
      " round ",
      named(event.round),
      ": ",
      namedList(event.chosen),
      event.unavailable.length ? [" (not available: ", namedList(event.unavailable), ")"] : "",
      ". ",
      event.predicted === null ? "" : `Predicted payoff ${short(event.predicted)}. `,
      `Made from ${count(event.made_from.rounds, "round")}, ${event.made_from.outcomes} with outcomes.`,
    ),
    reasonsThen(context, event.round),
  ],
  "reasons-kept": (event) => [
    h("p", {}, h("strong", {}, "Reasons written down"), " in full for round ", named(event.round), "."),
  ],
  "decision-executed": (event, context) => [
    h("p", {}, ...DONE[event.how](event), " ", doneButton(context, event.round)),
  ],
  "execution-corrected": (event, context) => [
    h(
      "p",
      {},
      h("strong", {}, "Corrected what was done"),
      `, revision ${event.revision}. `,
      ...DONE[event.how](event),
      event.reason ? ` Why: ${event.reason}. ` : " ",
      doneButton(context, event.round),
    ),
  ],
  "outcomes-reported": (event, context) => [
    h(
      "p",
      {},
      h("strong", {}, "Outcomes reported"),
      `: ${count(event.outcomes.length, "outcome")} of `,
      roundsOf(event.outcomes),
      `${event.refused.length ? `; ${event.refused.length} not accepted` : ""}.`,
    ),
    outcomesThen(context, event),
  ],
  "outcome-corrected": (event, context) => [
    h(
      "p",
      {},
      h("strong", {}, "Corrected"),
      " round ",
      named(event.round),
      event.arm === null ? "" : [", ", named(event.arm)],
      `, revision ${event.revision}: `,
      Object.entries(event.values)
        .map(([name, value]) => `${name} ${value === null ? "withdrawn" : `= ${short(value)}`}`)
        .join(", "),
      event.reason ? `. Why: ${event.reason}` : ".",
      " ",
      correctButton(context, event.round, event.arm),
    ),
  ],
  "outcome-expired": (event) => [
    h(
      "p",
      {},
      h("strong", {}, "Nothing more is expected"),
      " of round ",
      named(event.round),
      event.reason ? `: ${event.reason}` : ".",
    ),
  ],
  "rounds-imported": (event) => [
    h(
      "p",
      {},
      h("strong", {}, "Imported"),
      ` ${count(event.rounds.length, "round")} from `,
      named(event.source),
      event.rounds.length ? [", ", named(event.rounds[0].round), " to ", named(event.rounds.at(-1).round)] : "",
      ".",
    ),
  ],
};

function roundsOf(outcomes) {
  const rounds = [...new Set(outcomes.map((outcome) => outcome.round))];
  return rounds.length > 3
    ? count(rounds.length, "round")
    : [rounds.length === 1 ? "round " : "rounds ", namedList(rounds)];
}

const DONE = {
  "as-issued": (event) => [
    h("strong", {}, "Done as issued"),
    " in round ",
    named(event.round),
    ": ",
    whatWasDone(event),
    ".",
  ],
  overridden: (event) => [
    h("strong", {}, "Something else was done"),
    " in round ",
    named(event.round),
    ": ",
    whatWasDone(event),
    ".",
  ],
  cancelled: (event) => [h("strong", {}, "Cancelled"), " round ", named(event.round), "."],
};

/** The arms, with their amounts where there are any. */
function whatWasDone({ chosen, amounts }) {
  if (!amounts) return namedList(chosen);
  return chosen.flatMap((arm, k) => [k ? ", " : null, named(arm), ` ${short(amounts[arm])}`]);
}

function reasonsThen(context, round) {
  const box = h("div", { class: "then" });
  const details = h("details", { class: "more" }, h("summary", {}, "Reasons as they were then"), box);
  details.addEventListener("toggle", async () => {
    if (!details.open || box.childElementCount) return;
    try {
      renderDecision(box, await get(path("streams", context.stream, "decisions", round)), {
        state: "as it was decided",
        level: "h3",
      });
    } catch (error) {
      replace(box, inWords(error));
    }
  });
  return details;
}

function outcomesThen(context, event) {
  const values = (outcome) =>
    ["z", "y"]
      .filter((name) => outcome[name] !== null && outcome[name] !== undefined)
      .map((name) => `${name} = ${short(outcome[name])}`)
      .join(", ");
  const one = new Set(event.outcomes.map((outcome) => outcome.round)).size === 1;
  const label = (outcome) =>
    one && outcome.arm !== null
      ? named(outcome.arm)
      : [named(outcome.round), outcome.arm === null ? "" : [" ", named(outcome.arm)]];
  return h(
    "details",
    { class: "more" },
    h("summary", {}, "Values, and corrections"),
    h(
      "ul",
      { class: "values" },
      event.outcomes.map((outcome) =>
        h(
          "li",
          {},
          label(outcome),
          `: ${values(outcome)}${outcome.learned ? "" : " (too late to be learned)"}`,
          outcome.flag ? `; unusual: ${outcome.flag} ` : " ",
          correctButton(context, outcome.round, outcome.arm),
        ),
      ),
      event.refused.map((item) => h("li", {}, `${capital(item.status)}. ${item.reason}`)),
    ),
  );
}

const doneButton = (context, round) =>
  h(
    "button",
    {
      type: "button",
      class: "quiet small-button",
      "aria-label": `Correct what was done in round ${round}`,
      click: () => context.correctExecution(round),
    },
    "Correct",
  );

const correctButton = (context, round, arm) =>
  h(
    "button",
    {
      type: "button",
      class: "quiet small-button",
      "aria-label": `Correct round ${round}${arm === null ? "" : `, ${arm}`}`,
      click: () => context.correct(round, arm),
    },
    "Correct",
  );
