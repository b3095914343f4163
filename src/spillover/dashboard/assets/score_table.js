// Every arm's score taken apart: a bar of its parts with its interval, and the same as numbers.

import { h, named, svg, table } from "./dom.js";
import { decimalsFor, roundTo } from "./words.js";

export const FIRST = 12; // arms that are shown before somebody asks for all

const PARTS = [
  { name: "on_itself", words: "By itself", fill: null, kind: "fill-direct" },
  { name: "on_others", words: "Spill-over", fill: "url(#hatch-spill)", kind: "" },
  { name: "exploration", words: "Exploration bonus", fill: "url(#dots-explore)", kind: "" },
];

export function scoreTable(arms, { all = false } = {}) {
  const shown = all ? arms : arms.slice(0, Math.max(FIRST, arms.filter((arm) => arm.chosen).length + 3));
  const scale = scaleOf(shown);
  const heads = ["Arm", "Picture", ...PARTS.map((part) => part.words), "Score", "95% interval without bonus"];
  return table(
    heads,
    shown.map((arm) => rowOf(arm, scale)),
    { kind: "scores" },
  );
}

function rowOf(arm, scale) {
  const mark = arm.chosen ? h("span", { class: "mark chosen" }, "chosen") : h("span", { class: "mark" }, "not chosen");
  const ends = arm.total_interval;
  return [
    { content: [named(arm.arm), mark], kind: arm.chosen ? "arm is-chosen" : "arm" },
    { content: picture(arm, scale), kind: "picture" },
    ...PARTS.map((part) => ({
      content: arm.score === null && part.name === "exploration" ? "no data yet" : scale.words(arm[part.name]),
      kind: `part of-${part.name}`,
    })),
    { content: h("strong", {}, arm.score === null ? "first" : scale.words(arm.score)), kind: "score" },
    { content: ends ? `${scale.words(ends[0])} to ${scale.words(ends[1])}` : "-", kind: "interval" },
  ];
}

/** The range that all bars share; it always contains 0. */
function scaleOf(arms) {
  const ends = arms
    .flatMap((arm) => {
      const parts = PARTS.map((part) => arm[part.name] ?? 0);
      const sum = (sign) => parts.reduce((total, part) => total + Math.max(sign * part, 0), 0);
      return [sum(1), -sum(-1), ...(arm.total_interval ?? [])];
    })
    .filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const room = (high - low || 1) * 0.02;
  const decimals = Math.max(0, decimalsFor(Math.max(-low, high) / 10)); // the same for all arms: they are compared
  return { low: low < 0 ? low - room : 0, high: high + room, words: (value) => roundTo(value, decimals) };
}

function picture(arm, scale) {
  const at = (value) => (100 * (value - scale.low)) / (scale.high - scale.low);
  const percent = (value) => `${value.toFixed(3)}%`;
  let right = 0;
  let left = 0;
  const bars = PARTS.flatMap((part) => {
    const size = arm[part.name] ?? 0;
    if (!size) return [];
    const from = size > 0 ? right : left + size;
    if (size > 0) right += size;
    else left += size;
    return [
      svg("rect", {
        x: percent(at(from)),
        width: percent(at(from + Math.abs(size)) - at(from)),
        y: 3,
        height: 15,
        fill: part.fill,
        class: part.kind,
      }),
    ];
  });
  const ends = arm.total_interval;
  const total = (arm.on_itself ?? 0) + (arm.on_others ?? 0);
  const whisker = !ends
    ? []
    : [
        svg("line", { x1: percent(at(ends[0])), x2: percent(at(ends[1])), y1: 24, y2: 24, class: "whisker" }),
        ...ends.map((end) =>
          svg("line", { x1: percent(at(end)), x2: percent(at(end)), y1: 21, y2: 27, class: "whisker" }),
        ),
        svg("circle", { cx: percent(at(total)), cy: 24, r: 3, class: "whisker-dot" }),
      ];
  const unknown = arm.score === null && [
    svg("rect", { x: percent(at(0)), width: percent(99 - at(0)), y: 3, height: 15, class: "unknown-bar" }),
    svg("text", { x: percent(at(0) + 2), y: 15, class: "unknown-words" }, "no data yet: tried first"),
  ];
  return svg(
    "svg",
    { class: "bar", height: 30, "aria-hidden": "true", focusable: "false" },
    svg("line", { x1: percent(at(0)), x2: percent(at(0)), y1: 0, y2: 30, class: "zero" }),
    bars,
    unknown || [],
    whisker,
  );
}

/** What the parts look like. */
export function legend() {
  const swatch = (part) =>
    h(
      "li",
      {},
      svg(
        "svg",
        { class: "swatch", width: 22, height: 12, "aria-hidden": "true" },
        svg("rect", { width: 22, height: 12, fill: part.fill, class: part.kind }),
      ),
      part.words,
    );
  return h(
    "ul",
    { class: "legend", "aria-label": "What the picture shows" },
    PARTS.map(swatch),
    h(
      "li",
      {},
      svg(
        "svg",
        { class: "swatch", width: 22, height: 12, "aria-hidden": "true" },
        svg("line", { x1: 1, x2: 21, y1: 6, y2: 6, class: "whisker" }),
        svg("line", { x1: 1, x2: 1, y1: 2, y2: 10, class: "whisker" }),
        svg("line", { x1: 21, x2: 21, y1: 2, y2: 10, class: "whisker" }),
        svg("circle", { cx: 11, cy: 6, r: 3, class: "whisker-dot" }),
      ),
      "Expected effect, 95% interval",
    ),
  );
}
