// The fields of a round's outcomes: one line for each arm, with what is known already.

import { h, named, replace, show, table } from "./dom.js";
import { short, typed } from "./words.js";

const WORDS = { z: "Own reward (z)", y: "Outcome (y)" };

/** Fill `box` for a round. Returns update(line), values() and settled(outcomes, statuses). */
export function outcomeFields(box, settings, line, correct) {
  const payoff = settings.observes === "payoff";
  const seen = { both: ["z", "y"], own: ["z"], overall: ["y"], payoff: ["y"] }[settings.observes];
  const arms = payoff
    ? [""]
    : settings.observes === "own"
      ? line.chosen
      : [...line.chosen, ...settings.arms.filter((arm) => !line.chosen.includes(arm))];
  const cells = [];
  const rows = arms.map((arm) => [
    payoff
      ? "The whole round"
      : {
          content: [named(arm), line.chosen.includes(arm) && h("span", { class: "mark chosen" }, "done")],
          kind: "arm",
        },
    ...seen.map((name) => {
      if (name === "z" && !line.chosen.includes(arm))
        return { content: h("span", { class: "small" }, "not done"), kind: "value" };
      const cell = fieldOf(line.round, arm, name, correct);
      cells.push(cell);
      return { content: cell.box, kind: "value" };
    }),
  ]);
  replace(
    box,
    h(
      "div",
      { class: arms.length > 12 ? "wide tall" : "wide", tabindex: arms.length > 12 ? "0" : null },
      table(["Arm", ...seen.map((name) => (payoff ? "Payoff" : WORDS[name]))], rows, { kind: "outcomes" }),
    ),
  );
  return {
    update: (now) => cells.forEach((cell) => cell.update(now.outcomes[cell.arm])),
    values: () => arms.map((arm) => outcomeOf(line.round, arm, cells)).filter(Boolean),
    settled: (outcomes, statuses) =>
      cells.forEach((cell) => {
        const place = outcomes.findIndex((outcome) => (outcome.arm ?? "") === cell.arm);
        if (place >= 0 && statuses[place].status !== "refused") cell.input.value = "";
      }),
  };
}

function outcomeOf(round, arm, cells) {
  const found = { round };
  if (arm !== "") found.arm = arm;
  for (const cell of cells.filter((one) => one.arm === arm)) {
    const value = cell.read();
    if (value !== null) found[cell.name] = value;
  }
  return "z" in found || "y" in found ? found : null;
}

function fieldOf(round, arm, name, correct) {
  const words = `${WORDS[name]} of ${arm || "the round"}`;
  const input = h("input", { inputmode: "decimal", autocomplete: "off", "aria-label": words, class: "value-input" });
  const note = h("span", { class: "known" });
  const change = h(
    "button",
    {
      type: "button",
      class: "quiet small-button",
      "aria-label": `Correct ${words}`,
      click: () => correct(round, arm === "" ? null : arm),
    },
    "Correct",
  );
  const box = h("span", { class: "value-box" }, input, note, change);
  show(change, false);
  return {
    box,
    input,
    arm,
    name,
    read() {
      if (input.hidden) return null;
      try {
        return typed(input.value);
      } catch (error) {
        input.setAttribute("aria-invalid", "true");
        input.focus();
        throw error;
      }
    },
    /** What was reported already. Somebody else's value does not wipe out what is being typed. */
    update(outcome) {
      const known = outcome?.[name] ?? null;
      const typing = input.value.trim() !== "";
      show(input, known === null || typing);
      show(change, known !== null);
      replace(note, known === null ? null : typing ? `reported meanwhile: ${short(known)}` : short(known));
    },
  };
}
