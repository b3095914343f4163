// The dialogue that corrects an outcome: its history so far, and the next revision.

import { get, inWords, path, send } from "./api.js";
import { byId, h, named, replace, show } from "./dom.js";
import { onSubmit } from "./forms.js";
import { say } from "./live.js";
import { moment, short, typed } from "./words.js";

/** Returns correct(round, arm), which opens the dialogue. */
export function corrections(context) {
  const dialog = byId("correct-dialog");
  let now = null;
  byId("correct-cancel").addEventListener("click", () => dialog.close());
  onSubmit(byId("correct-form"), async (key) => {
    const values = changed(now);
    const reason = byId("correct-reason").value.trim();
    const body = {
      round: now.round,
      ...(now.arm === null ? {} : { arm: now.arm }),
      revision: now.known.revision + 1,
      values,
      ...(reason ? { reason } : {}),
    };
    await send(path("streams", context.stream, "corrections"), body, { key });
    say("The correction of round ", named(now.round), " is recorded.");
    dialog.close();
    await context.refresh();
  });
  return async (round, arm) => {
    const problem = byId("correct-form").querySelector(".problem");
    show(problem, false);
    replace(
      byId("correct-words"),
      "Round ",
      named(round),
      arm === null ? "" : [", arm ", named(arm)],
      ". The old value stays in the log.",
    );
    byId("correct-reason").value = "";
    replace(byId("correct-history"));
    dialog.showModal();
    try {
      const line = await context.roundNow(round);
      now = { round, arm, known: line.outcomes[arm ?? ""], chosen: arm === null || line.chosen.includes(arm) };
      fill(context.overview().settings, now);
      await history(context, now);
    } catch (error) {
      replace(problem, inWords(error));
      show(problem, true);
    }
  };
}

function fill(settings, { known, chosen }) {
  const seen = { both: ["z", "y"], own: ["z"], overall: ["y"], payoff: ["y"] }[settings.observes].filter(
    (name) => name !== "z" || chosen,
  );
  const words = { z: "Own reward (z)", y: settings.observes === "payoff" ? "Payoff of the round" : "Outcome (y)" };
  replace(
    byId("correct-fields"),
    seen.map((name) =>
      h(
        "div",
        { class: "field short" },
        h("label", { for: `correct-${name}` }, words[name]),
        h("input", {
          id: `correct-${name}`,
          "data-name": name,
          inputmode: "decimal",
          autocomplete: "off",
          value: known[name] === null ? "" : String(known[name]),
        }),
      ),
    ),
  );
  byId("correct-fields").querySelector("input").focus();
}

function changed({ known }) {
  const values = {};
  for (const field of byId("correct-fields").querySelectorAll("input")) {
    const value = typed(field.value);
    if (value !== known[field.dataset.name]) values[field.dataset.name] = value;
  }
  if (!Object.keys(values).length) throw new RangeError("Nothing differs from what is recorded.");
  return values;
}

/** Every report and correction of the outcome, in order. */
async function history(context, { round, arm }) {
  const mine = (one) => one.round === round && (one.arm ?? null) === arm;
  const lines = [];
  for (let after = 0; after !== null;) {
    const page = await get(path("streams", context.stream, "events"), { after, limit: 1000 });
    for (const entry of page.events) {
      for (const values of valuesIn(entry, mine, arm)) lines.push({ entry, values });
    }
    after = page.next ?? null;
  }
  replace(
    byId("correct-history"),
    lines.map(({ entry, values }) =>
      h(
        "li",
        {},
        `${moment(entry.time)}${entry.author ? `, ${entry.author}` : ""}: `,
        Object.entries(values)
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => `${name} ${value === null ? "withdrawn" : `= ${short(value)}`}`)
          .join(", "),
        entry.event.reason ? ` (${entry.event.reason})` : "",
      ),
    ),
  );
}

function valuesIn(entry, mine, arm) {
  const given = ({ z, y }) => ({ z: z ?? undefined, y: y ?? undefined });
  if (entry.kind === "outcome-corrected") return mine(entry.event) ? [entry.event.values] : [];
  if (entry.kind === "outcomes-reported") return entry.event.outcomes.filter(mine).map(given);
  if (entry.kind !== "rounds-imported") return [];
  return entry.event.rounds
    .filter((line) => mine({ round: line.round, arm }))
    .map((line) => given({ z: line.z[arm ?? ""], y: line.y[arm ?? ""] }));
}
