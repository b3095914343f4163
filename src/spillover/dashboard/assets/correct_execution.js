// The dialogue that corrects what was recorded as done in a round.

import { inWords, path, send } from "./api.js";
import { amountFields } from "./amount_fields.js";
import { armPicker } from "./arm_picker.js";
import { byId, named, replace, show } from "./dom.js";
import { onSubmit } from "./forms.js";
import { say } from "./live.js";

/** Returns correct(round), which opens the dialogue. */
export function executionCorrections(context) {
  const dialog = byId("done-dialog");
  const cancelled = byId("done-cancelled");
  let [now, what] = [null, null]; // the round as it is recorded, and what the form says was done
  byId("done-close").addEventListener("click", () => dialog.close());
  cancelled.addEventListener("change", () => show(byId("done-arms"), !cancelled.checked));
  onSubmit(byId("done-form"), async (key) => {
    const done = cancelled.checked ? { cancelled: true } : what();
    if (JSON.stringify(done) === JSON.stringify(recorded(now)))
      throw new RangeError("Nothing differs from what is recorded.");
    const reason = byId("done-reason").value.trim();
    const body = { round: now.round, ...done, revision: now.revision + 1, ...(reason ? { reason } : {}) };
    await send(path("streams", context.stream, "executions"), body, { key });
    say("What was done in round ", named(now.round), " is corrected.");
    dialog.close();
    await context.refresh();
  });
  return async (round) => {
    const problem = byId("done-form").querySelector(".problem");
    show(problem, false);
    replace(byId("done-words"), "Round ", named(round), ". What was recorded before stays in the log.");
    byId("done-reason").value = "";
    show(byId("done-fields"), false);
    dialog.showModal();
    try {
      now = await context.roundNow(round);
      what = fieldsOf(context.overview().settings, now);
      cancelled.checked = now.how === "cancelled";
      show(byId("done-arms"), !cancelled.checked);
      show(byId("done-fields"), true);
    } catch (error) {
      replace(problem, inWords(error));
      show(problem, true);
    }
  };
}

/** Fields with what is recorded; returns a function that reads them. */
function fieldsOf(settings, line) {
  if (!line.amounts) {
    const picker = armPicker(byId("done-arms"), settings.arms, "What was done");
    picker.choose(line.chosen);
    return () => ({ chosen: picker.chosen() });
  }
  const fields = amountFields(byId("done-arms"), settings.arms, "How much was done; leave the others empty");
  fields.fill(line.amounts);
  return () => ({ amounts: fields.amounts() });
}

function recorded({ how, chosen, amounts }) {
  if (how === "cancelled") return { cancelled: true };
  return amounts ? { amounts } : { chosen };
}
