// Check boxes for arms, with a search where there are many.

import { h, named, replace, show } from "./dom.js";

const MANY = 12;
let pickers = 0;

/** Fill `box`; returns {chosen(), choose(names)}. What was ticked stays when the arms are the same. */
export function armPicker(box, arms, legend) {
  const id = `picker-${(pickers += 1)}`;
  const checks = arms.map((arm) => h("input", { type: "checkbox", value: arm }));
  const rows = arms.map((arm, k) => h("label", { class: "check" }, checks[k], named(arm)));
  const search = h("input", { id, type: "search", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () =>
    rows.forEach((row, k) => {
      show(row, arms[k].toLowerCase().includes(search.value.trim().toLowerCase()));
    }),
  );
  const many = arms.length > MANY;
  replace(
    box,
    h(
      "fieldset",
      { class: "picker" },
      h("legend", {}, legend),
      many && h("div", { class: "field" }, h("label", { for: id }, "Search an arm"), search),
      h(
        "div",
        {
          class: many ? "picker-rows many" : "picker-rows",
          tabindex: many ? "0" : null,
          role: many ? "group" : null,
          "aria-label": many ? legend : null,
        },
        rows,
      ),
    ),
  );
  return {
    chosen: () => checks.filter((check) => check.checked).map((check) => check.value),
    choose: (names) =>
      checks.forEach((check) => {
        check.checked = names.includes(check.value);
      }),
  };
}
