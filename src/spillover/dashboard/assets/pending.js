// Rounds whose outcomes are still to come, how late each is, and the form to report them.

import { inWords, path, send } from "./api.js";
import { byId, h, keepChildren, named, namedList, replace, show, svg } from "./dom.js";
import { onSubmit } from "./forms.js";
import { say } from "./live.js";
import { outcomeFields } from "./outcome_fields.js";
import { count } from "./words.js";

const FIRST = 20;
let all = false;

export function renderPending(context, overview) {
  const { pending, delays, rounds } = overview;
  const lines = new Map(rounds.map((line) => [line.round, line]));
  replace(byId("usual"), usual(pending, delays));
  replace(byId("ruler-words"), rulerWords(pending, delays));
  replace(byId("nav-pending"), String(pending.length));
  show(byId("nav-pending"), pending.length > 0);
  const shown = all ? pending : pending.slice(0, FIRST);
  keepChildren(
    byId("pending-list"),
    shown,
    (item) => `${item.round}, revision ${lines.get(item.round)?.revision}`, // other arms, other fields
    (item) => makeCard(context, overview.settings, item),
    (card, item) => {
      replace(card.querySelector(".pending-words"), lateness(item, delays));
      replace(card.querySelector(".pending-arms"), "Done: ", namedList(lines.get(item.round)?.chosen ?? []));
      replace(card.querySelector(".pending-ruler"), ruler(item, delays));
      card.classList.toggle("late", item.late);
    },
  );
  const more = byId("pending-more");
  replace(more, `Show all ${pending.length} pending rounds`);
  show(more, pending.length > shown.length);
  more.onclick = () => {
    all = true;
    renderPending(context, overview);
  };
}

function usual(pending, delays) {
  const known = delays.known
    ? `Usually half of them are complete ${after(delays.median)} and 9 of 10 ${after(delays.most)}; ` +
      `the slowest was complete ${after(delays.longest)}.`
    : "No round has been completed by reports yet, so what is usual is not known.";
  return pending.length
    ? [`${count(pending.length, "round")} ${pending.length === 1 ? "waits" : "wait"} for outcomes. `, known]
    : ["Nothing is pending. ", delays.known ? known : ""];
}

/** How to read the rulers. */
function rulerWords(pending, delays) {
  return pending.length && delays.known
    ? "On each ruler the diamond is the round, the blue part is the time by which 9 of 10 outcomes arrive, " +
        "and the mark is the time by which half do."
    : "";
}

const after = (rounds) =>
  rounds === 0 ? "before the next round" : `after ${count(Math.round(10 * rounds) / 10, "round")}`;

function lateness(item, delays) {
  const waiting = item.age === 0 ? "The latest round" : `Waiting for ${count(item.age, "round")}`;
  const state = item.late
    ? h("strong", { class: "tag late-tag" }, "Later than usual")
    : delays.known
      ? h("span", { class: "tag" }, "In time")
      : null;
  return [state, ` ${waiting}; ${count(item.missing, "value")} missing.`];
}

/** How long it waits, against what is usual. */
function ruler(item, delays) {
  if (!delays.known) return null;
  const end = Math.max(delays.longest, item.age, 1);
  const at = (rounds) => `${(2 + (96 * rounds) / end).toFixed(2)}%`;
  return svg(
    "svg",
    { class: "ruler", height: 18, "aria-hidden": "true", focusable: "false" },
    svg("line", { x1: "2%", x2: "98%", y1: 9, y2: 9, class: "ruler-track" }),
    svg("line", { x1: at(0), x2: at(delays.most), y1: 9, y2: 9, class: "ruler-usual" }),
    svg("line", { x1: at(delays.median), x2: at(delays.median), y1: 4, y2: 14, class: "ruler-median" }),
    svg(
      "svg",
      { x: at(item.age), y: 9, overflow: "visible" },
      svg("path", { d: "M0 -7 L7 0 L0 7 L-7 0 Z", class: "ruler-mark" }),
    ),
  );
}

function makeCard(context, settings, item) {
  const fields = h("div", { class: "outcome-fields" });
  const form = h(
    "form",
    { novalidate: true, "aria-label": `Report outcomes of round ${item.round}` },
    fields,
    h("p", { class: "problem", role: "alert", hidden: true }),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Record the outcomes")),
  );
  const report = h("details", { class: "more report" }, h("summary", {}, "Report outcomes"), form);
  const reason = h("input", { id: `reason-${item.round}`, autocomplete: "off", maxlength: "200" });
  const expire = h(
    "form",
    { novalidate: true },
    h(
      "p",
      { class: "hint" },
      "Nothing is learned from what is missing. What arrives later is recorded, but not learned.",
    ),
    h("div", { class: "field" }, h("label", { for: `reason-${item.round}` }, "Why (it goes into the log)"), reason),
    h("p", { class: "problem", role: "alert", hidden: true }),
    h("div", { class: "buttons" }, h("button", { type: "submit" }, "Nothing more will come")),
  );
  const card = h(
    "li",
    { class: "card pending-card" },
    h("h3", {}, "Round ", named(item.round)),
    h("p", { class: "pending-arms small" }),
    h("p", { class: "pending-words" }),
    h("div", { class: "pending-ruler" }),
    report,
    h("details", { class: "more expire" }, h("summary", {}, "Nothing more will come"), expire),
  );
  wireReport(context, settings, item.round, { report, form, fields });
  onSubmit(expire, async (key) => {
    await send(
      path("streams", context.stream, "expirations"),
      { round: item.round, reason: reason.value.trim() },
      { key },
    );
    say("Round ", named(item.round), ": nothing more is expected.");
    await context.refresh();
    byId("pending-title").focus();
  });
  return card;
}

function wireReport(context, settings, round, { report, form, fields }) {
  let rows = null;
  const fill = async () => {
    if (!report.open) return;
    try {
      const line = await context.roundNow(round);
      rows ??= outcomeFields(fields, settings, line, context.correct);
      rows.update(line);
    } catch (error) {
      replace(fields, inWords(error));
    }
  };
  report.addEventListener("toggle", fill);
  report.addEventListener("refresh", fill);
  onSubmit(form, async (key) => {
    const outcomes = rows.values();
    if (!outcomes.length) throw new RangeError("Nothing is filled in yet.");
    const { statuses } = await send(path("streams", context.stream, "outcomes"), { outcomes }, { key });
    rows.settled(outcomes, statuses);
    const refused = statuses.filter((status) => status.status === "refused");
    const late = statuses.filter((status) => status.status === "late").length;
    const flags = statuses.map((status) => status.flag).filter(Boolean);
    say(
      `${count(statuses.length - refused.length, "outcome")} of round `,
      named(round),
      ` recorded${late ? "; too late to be learned from" : ""}.`,
      flags.length ? ` Check this: ${flags.join("; ")}.` : "",
    );
    await context.refresh();
    if (refused.length) throw new RangeError(refused.map((status) => status.reason).join("\n"));
    if (!form.isConnected) byId("pending-title").focus();
  });
}
