// The forms beside the decision: decide a round, and say what was done.

import { path, send } from "./api.js";
import { amountFields } from "./amount_fields.js";
import { armPicker } from "./arm_picker.js";
import { byId, h, named, namedList, replace, show } from "./dom.js";
import { onSubmit, required } from "./forms.js";
import { say } from "./live.js";

const BUILT_IN = ["month", "weekday", "season", "trend"];

/** Forms of a stream. `done(round)` is called after something was recorded; returns functions that update them. */
export function actions(stream, done) {
  const picked = {};
  let doses = false;
  let open = null;
  let suggested = "";

  onSubmit(
    byId("decide-form"),
    async (key) => {
      const field = byId("decide-round");
      const round = required(field, "Say which round is to be decided.");
      const decision = await send(
        path("streams", stream, "decisions"),
        { round, unavailable: picked.unavailable.chosen(), context: contextValues() },
        { key },
      );
      say(
        decision.again
          ? ["Round ", named(round), " was decided before: this is the same decision."]
          : ["Round ", named(round), " is decided."],
      );
      picked.unavailable.choose([]);
      field.value = suggested; // from now on it follows the suggestion again
      await done(round);
    },
    { fields: { round: byId("decide-round") } },
  );

  const execute = (form, body, words) =>
    onSubmit(
      byId(form),
      async (key) => {
        const round = open;
        await send(path("streams", stream, "executions"), { round, ...body() }, { key });
        say("Round ", named(round), words);
        for (const box of ["override-box", "cancel-box"]) byId(box).open = false;
        await done(null);
      },
      { problem: byId("act-problem") },
    );
  execute("execute-form", () => ({}), ": done as issued.");
  const whatWasDone = () => (doses ? { amounts: picked.done.amounts() } : { chosen: picked.done.chosen() });
  execute("override-form", whatWasDone, ": what was done is recorded.");
  execute("cancel-form", () => ({ cancelled: true }), ": cancelled.");

  return {
    /** Once: the fields that depend on the stream's settings. */
    prepare(settings) {
      picked.unavailable = armPicker(byId("decide-unavailable"), settings.arms, "Not available in this round");
      doses = settings.doses ?? false;
      picked.done = doses
        ? amountFields(byId("override-arms"), settings.arms, "How much was done; leave the others empty")
        : armPicker(byId("override-arms"), settings.arms, "What was done");
      show(byId("execute-form"), !doses);
      if (doses) replace(byId("override-words"), "How much was done");
      const names = settings.context.filter((name) => !BUILT_IN.includes(name));
      replace(
        byId("decide-context"),
        names.map((name, k) =>
          h(
            "div",
            { class: "field" },
            h("label", { for: `context-${k}` }, "Context: ", named(name)),
            h("input", { id: `context-${k}`, "data-context": name, autocomplete: "off", spellcheck: "false" }),
          ),
        ),
      );
    },
    /** The round that follows; what somebody typed stays. */
    suggest(round) {
      const field = byId("decide-round");
      if (field.value === suggested) field.value = round ?? "";
      suggested = round ?? "";
    },
    /** Show the forms of a decision that waits for its execution, or those to decide a round. */
    turnTo(round, chosen) {
      if (round !== open && round !== null) {
        picked.done.choose(chosen);
        byId("override-box").open = doses;
      }
      open = round;
      show(byId("act-open"), round !== null);
      show(byId("decide-form"), round === null);
      if (round !== null) {
        replace(
          byId("act-open-words"),
          "Say what was done in round ",
          named(round),
          ". Only what was done is learned from.",
        );
        replace(byId("execute-button"), "Done as issued: ", namedList(chosen));
      }
      replace(byId("act-title"), round === null ? "Decide a round" : "What was done?");
    },
  };
}

function contextValues() {
  const found = {};
  for (const field of document.querySelectorAll("[data-context]")) {
    const text = required(field, `Give the context ${field.dataset.context} of the round.`);
    found[field.dataset.context] = Number.isFinite(Number(text)) ? Number(text) : text;
  }
  return found;
}
