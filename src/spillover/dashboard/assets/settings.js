// The settings of a stream in words, and the form that changes them.

import { inWords, path, request, send, withQuery } from "./api.js";
import { byId, h, namedList, replace, show, table } from "./dom.js";
import { onSubmit, range, wholeNumber } from "./forms.js";
import { say } from "./live.js";
import { count, items } from "./words.js";

const OBSERVES = {
  both: "the own reward of each chosen arm (z) and the outcome of every arm (y)",
  own: "the own reward of each chosen arm (z)",
  overall: "the outcome of every arm (y)",
  payoff: "one number for the whole round",
};

const NAMES = {
  budget: "Most arms in a round",
  policy: "Policy",
  max_age_rounds: "Rounds until an outcome is too late",
  reward_range: "Range of own rewards",
  greedy: "Without exploration",
  set: "Hyperparameters",
  limits: "Limits",
};

export function renderSettings(settings, policy) {
  const pairs = [
    [
      "Arms",
      [`${settings.arms.length}: `, namedList(settings.arms.slice(0, 30)), settings.arms.length > 30 ? " ..." : ""],
    ],
    ["Chosen in a round", `at most ${settings.budget}`],
    ["Reported of a round", OBSERVES[settings.observes]],
    ["Policy", settings.policy ?? (policy ? `${policy} (recommended)` : "the recommended one")],
    ["Hyperparameters", settings.set.join(", ") || null],
    ["Context", settings.context.length ? namedList(settings.context) : null],
    ["Good outcomes are", settings.minimise ? "low" : null],
    ["What is done", settings.doses ? "amounts" : null],
    [
      "Range of own rewards",
      settings.reward_range ? `${settings.reward_range[0]} to ${settings.reward_range[1]}` : null,
    ],
    ["Exploration", settings.greedy ? "none: by what is known alone" : null],
    ["Limits", settings.limits.length ? count(settings.limits.length, "limit") : null],
    [
      "Outcomes are learned",
      settings.max_age_rounds === null
        ? "however late they arrive"
        : `up to ${count(settings.max_age_rounds, "round")} late`,
    ],
  ];
  replace(
    byId("settings-list"),
    pairs
      .filter(([, words]) => words !== null)
      .map(([name, words]) => h("div", {}, h("dt", {}, name), h("dd", {}, words))),
  );
}

export function settingsForm(context) {
  const box = byId("settings-box");
  let base = null; // the settings that the form was filled with, and `seq`, the entry at which they were read
  box.addEventListener("toggle", () => {
    if (!box.open) return;
    base = context.overview();
    fill(base.settings);
    show(byId("settings-both"), false);
  });
  onSubmit(
    byId("settings-form"),
    async (key) => {
      const given = read();
      const changes = Object.fromEntries(differing(given, base.settings).map((name) => [name, given[name]]));
      if (!Object.keys(changes).length) throw new RangeError("Nothing differs from the settings that hold.");
      const body = { ...changes, read_at: base.seq };
      try {
        await send(path("streams", context.stream, "settings"), body, { key, method: "PATCH" });
      } catch (error) {
        if (!error.recorded?.settings) throw error;
        showBoth(base.settings, error.recorded, changes);
        base = error.recorded;
        fill({ ...base.settings, ...changes });
        error.message =
          `${base.author || "somebody"} changed the settings while you did. The table has what holds now beside ` +
          "what you gave; all other fields are as they are now. Press the button again to record yours.";
        throw error;
      }
      say("The settings are changed.");
      box.open = false;
      await context.refresh();
    },
    {
      fields: {
        budget: byId("set-budget"),
        policy: byId("set-policy"),
        max_age_rounds: byId("set-age"),
        reward_range: byId("set-low"),
        set: byId("set-options"),
        limits: byId("set-limits"),
      },
    },
  );
  for (const button of document.querySelectorAll("[data-export]"))
    button.addEventListener("click", () => download(context.stream, button.dataset.export));
  byId("audit-button").addEventListener("click", () => audit(context.stream));
}

const differing = (one, other) =>
  Object.keys(one).filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));

/** What somebody else changed, and what this form would change. */
function showBoth(before, recorded, changes) {
  const names = new Set([...differing(recorded.settings, before), ...Object.keys(changes)]);
  const words = (value) => (value === null ? "none" : JSON.stringify(value));
  replace(
    byId("settings-both"),
    table(
      ["Setting", `Now (entry ${recorded.seq})`, "You gave"],
      [...names].map((name) => [
        NAMES[name] ?? name,
        words(recorded.settings[name]),
        name in changes ? words(changes[name]) : "not changed",
      ]),
    ),
  );
  show(byId("settings-both"), true);
}

function fill(settings) {
  byId("set-budget").value = settings.budget;
  byId("set-policy").value = settings.policy ?? "";
  byId("set-age").value = settings.max_age_rounds ?? "";
  [byId("set-low").value, byId("set-high").value] = settings.reward_range ?? ["", ""];
  byId("set-greedy").checked = settings.greedy;
  byId("set-options").value = settings.set.join("\n");
  byId("set-limits").value = settings.limits.length ? JSON.stringify(settings.limits, null, 1) : "";
}

function read() {
  const age = byId("set-age").value.trim();
  return {
    budget: wholeNumber(byId("set-budget"), "Say how many arms may be chosen: a whole number from 1 on."),
    policy: byId("set-policy").value.trim() || null,
    max_age_rounds:
      age === "" ? null : wholeNumber(byId("set-age"), "Rounds late: a whole number from 1 on, or empty."),
    reward_range: range(byId("set-low"), byId("set-high"), "Give both ends of the range, or none."),
    greedy: byId("set-greedy").checked,
    set: items(byId("set-options").value, "\n"),
    limits: limits(),
  };
}

function limits() {
  const text = byId("set-limits").value.trim();
  if (!text) return [];
  try {
    return JSON.parse(text);
  } catch {
    throw new RangeError('The limits must be a list in JSON, such as [{"kind": "at-most", ...}].');
  }
}

/** A file with the history; fetched, as a link could not carry the token. */
async function download(stream, format) {
  try {
    const response = await request(withQuery(path("streams", stream, "export"), { format }));
    const link = h("a", { href: URL.createObjectURL(await response.blob()), download: `${stream}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } catch (error) {
    say(inWords(error));
  }
}

async function audit(stream) {
  const words = byId("audit-words");
  replace(words, "Checking every entry and making every decision again ...");
  try {
    const found = await send(path("streams", stream, "audit"), {});
    replace(
      words,
      found.passed
        ? `All is well: ${count(found.entries, "entry", "entries")} checked, ` +
            `${count(found.decisions, "decision")} made again with the same answer.`
        : ["Something is wrong: ", found.problems.join("; ")],
    );
  } catch (error) {
    replace(words, inWords(error));
  }
}
