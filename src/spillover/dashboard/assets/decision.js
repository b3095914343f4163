// A decision with its reasons: the one that would be made now, or one as it was made then.

import { h, named, namedList, replace } from "./dom.js";
import { FIRST, legend, scoreTable } from "./score_table.js";
import { count, number, rough, sentence } from "./words.js";

const shown = new WeakMap();

/** Fill `box` with an answer, as `spillover next --json` gives it. What did not change is left alone. */
export function renderDecision(box, answer, { state, level = "h3" }) {
  const content = JSON.stringify([answer, state]);
  if (shown.get(box) === content && box.childElementCount > 1) return;
  shown.set(box, content);
  const focused = box.querySelector(".statement") === document.activeElement && document.activeElement !== null;
  const open = new Set([...box.querySelectorAll("details[open]")].map((details) => details.dataset.name));
  replace(
    box,
    h(
      "p",
      { class: "eyebrow" },
      answer.round !== null ? ["Round ", named(answer.round)] : answer.rounds ? "The next round" : "The first round",
      h("span", { class: "state" }, state),
    ),
    h(level, { class: "statement", tabindex: "-1" }, "Choose ", namedList(answer.choose)),
    notYet(answer),
    facts(answer),
    legend(),
    scores(answer.reasons.arms),
    paths(answer.reasons),
    checks(answer),
  );
  for (const details of box.querySelectorAll("details")) details.open = open.has(details.dataset.name);
  if (focused) box.querySelector(".statement").focus();
}

function notYet(answer) {
  if (!answer.not_yet.length) return null;
  return h(
    "div",
    { class: "notice" },
    h(
      "p",
      {},
      h("strong", {}, "Not yet. "),
      "The data cannot tell which arms are best; these are chosen to learn most.",
    ),
    h(
      "ul",
      {},
      answer.not_yet.map((words) => h("li", {}, sentence(words))),
    ),
  );
}

/** The decision in sentences: what nearly was chosen instead, and what it rests on. */
function facts(answer) {
  const { reasons } = answer;
  return h(
    "ul",
    { class: "facts" },
    reasons.planned &&
      h("li", {}, h("strong", {}, "By a plan: "), reasons.plan || "the first rounds try out the arms", "."),
    swap(reasons.swaps[0]),
    known(answer),
    answer.limits.length > 0 && h("li", {}, h("strong", {}, "Within the limits: "), answer.limits.join("; "), "."),
    h(
      "li",
      {},
      h("strong", {}, "Learned from: "),
      answer.rounds
        ? `${answer.rounds - answer.pending.length} of ${count(answer.rounds, "round")}, by ${answer.policy}.`
        : `nothing yet, by ${answer.policy}.`,
    ),
  );
}

function swap(closest) {
  if (!closest || closest.change === null) return null;
  const words = (change, what) =>
    Math.abs(change) < 1e-9
      ? `not change ${what}`
      : `${change > 0 ? "raise" : "lower"} ${what} by ${rough(Math.abs(change))}`;
  return h(
    "li",
    {},
    h("strong", {}, "Closest swap: "),
    named(closest.in),
    " for ",
    named(closest.out),
    " would ",
    words(closest.change, "the score"),
    closest.expected_change === null ? "" : `; without the bonus it would ${words(closest.expected_change, "it")}`,
    ".",
  );
}

function known(answer) {
  const same =
    answer.greedy.length === answer.choose.length && answer.greedy.every((arm) => answer.choose.includes(arm));
  return h(
    "li",
    {},
    h("strong", {}, "By what is known alone: "),
    same ? "the same" : answer.greedy.length ? namedList(answer.greedy) : "no arm stands out yet",
    ".",
  );
}

function scores(arms) {
  const box = h("div", { class: "wide" }, scoreTable(arms));
  if (arms.length <= FIRST) return box;
  const button = h(
    "button",
    {
      type: "button",
      class: "quiet",
      click: () => {
        replace(box, scoreTable(arms, { all: true }));
        button.remove();
      },
    },
    `Show all ${arms.length.toLocaleString("en-US")} arms`,
  );
  return [box, button];
}

/** Along which paths of the graph the chosen arms spill over. */
function paths(reasons) {
  const shown = reasons.arms.filter((arm) => arm.chosen && arm.paths.some((path) => Math.abs(path.amount) >= 0.0005));
  if (!shown.length) return null;
  return h(
    "details",
    { class: "more", "data-name": "paths" },
    h("summary", {}, "Where the spill-over goes"),
    shown.map((arm) =>
      h(
        "div",
        {},
        h("p", {}, named(arm.arm), " spills over"),
        h(
          "ul",
          { class: "paths" },
          arm.paths
            .filter((path) => Math.abs(path.amount) >= 0.0005)
            .map((path) =>
              h(
                "li",
                {},
                h("span", { class: "number" }, number(path.amount)),
                " along ",
                path.arms.flatMap((name, k) => [k ? " \u2192 " : "", named(name)]),
              ),
            ),
        ),
      ),
    ),
  );
}

function checks(answer) {
  const sentences = [
    ...(heard(answer) ? [] : everyWarning(answer)),
    ...answer.reasons.health.filter((signal) => !signal.warning).map((signal) => signal.sentence),
    ...answer.findings.filter((finding) => finding.severity !== "warning").map((finding) => finding.sentence),
    ...answer.notes.map(sentence),
  ];
  if (!sentences.length) return null;
  return h(
    "details",
    { class: "more", "data-name": "checks" },
    h("summary", {}, "What was checked"),
    h(
      "ul",
      {},
      [...new Set(sentences)].map((words) => h("li", {}, words)),
    ),
  );
}

/** What a person should look at before anything else. That a new stream knows nothing yet is no such thing. */
export const warningsOf = (answer) => (heard(answer) ? everyWarning(answer) : []);

const heard = (answer) => answer.rounds > answer.pending.length;

function everyWarning(answer) {
  return [
    ...new Set([
      ...answer.reasons.health.filter((signal) => signal.warning).map((signal) => signal.sentence),
      ...answer.warnings.map(sentence),
      ...answer.findings.filter((finding) => finding.severity === "warning").map((finding) => finding.sentence),
    ]),
  ];
}
