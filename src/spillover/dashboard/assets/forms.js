// Forms: sent once however often the button is pressed, with problems beside what was typed.

import { inWords, newKey, Problem } from "./api.js";
import { replace, show } from "./dom.js";

/** Call `submit(key)` when a form is sent. What was typed stays if it fails; the key stays until the server answered. */
export function onSubmit(form, submit, { problem = form.querySelector(".problem"), fields = {} } = {}) {
  let key = newKey();
  let busy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    clear(form, problem);
    try {
      await submit(key);
      key = newKey();
    } catch (error) {
      if (error instanceof Problem) key = newKey();
      replace(problem, inWords(error));
      show(problem, true);
      mark(fields[error.field]);
    } finally {
      busy = false;
    }
  });
}

function clear(form, problem) {
  replace(problem);
  show(problem, false);
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Lead to the field that a problem is about. */
function mark(field) {
  if (!field) return;
  field.closest("details")?.setAttribute("open", "");
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

/** A field that must be filled in, before the server is asked. */
export function required(field, words) {
  const value = field.value.trim();
  if (value === "") {
    field.setAttribute("aria-invalid", "true");
    field.focus();
    throw new RangeError(words);
  }
  return value;
}

/** A number of arms. */
export function wholeNumber(field, words) {
  const value = Number(required(field, words));
  if (!Number.isInteger(value) || value < 1) {
    field.setAttribute("aria-invalid", "true");
    field.focus();
    throw new RangeError(words);
  }
  return value;
}

/** Two ends of a range; null if both are empty. */
export function range(low, high, words) {
  if (low.value.trim() === "" && high.value.trim() === "") return null;
  return [Number(required(low, words)), Number(required(high, words))];
}
