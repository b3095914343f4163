// The estimated graph: who spills over to whom, how much, and how sure that is.

import { byId, h, named, printable, replace, svg, table } from "./dom.js";
import { count, interval, number, probability } from "./words.js";

const LIKELY = 0.05; // edges below are left out of the picture
const SURE = 0.95; // edges below are dashed
const MOST_ARMS = 24;
const MOST_LABELS = 14;
const LETTER = 8.6; // of a name in bold, at most on average
const BESIDE = 18; // from the middle of a circle to its name
let latest = null;

export function renderGraph(outlook) {
  latest = outlook;
  const { known, edges: all } = outlook.reasons.graph;
  const strength = Math.max(...all.map((edge) => Math.abs(edge.weight ?? 0)), 1e-12);
  const likely = (edge) =>
    edge.probability === null ? Math.abs(edge.weight) > 0.01 * strength : edge.probability >= LIKELY;
  const edges = all.filter(likely).sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight));
  replace(byId("graph-words"), wordsOf(known, edges, all.length));
  replace(byId("graph-table"), known && edges.length ? edgeTable(edges) : null);
  draw(outlook, edges, strength);
}

export const redrawGraph = () => latest && renderGraph(latest);

function wordsOf(known, edges, all) {
  if (!known) return "This policy does not estimate a graph.";
  if (!edges.length) return "No edge is likely so far: what is known does not show that any arm spills over.";
  const left = all - edges.length;
  const unlikely = `${count(left, "edge")} with a probability under 5% ${left === 1 ? "is" : "are"} left out.`;
  return [
    "An arrow is wider the more spills over, and dashed where it is less than 95% sure that the edge exists. ",
    "Filled circles are the arms to choose. ",
    left ? unlikely : "",
  ];
}

function edgeTable(edges) {
  return table(
    ["From", "To", "Passes on, 95% interval", "How sure"],
    edges
      .slice(0, 200)
      .map((edge) => [
        named(edge.from),
        named(edge.to),
        [number(edge.weight, edge.interval), " ", h("span", { class: "small" }, interval(edge.interval))],
        sureness(edge),
      ]),
    { kind: "edges" },
  );
}

function sureness(edge) {
  const p = edge.probability;
  if (p === null) return "not estimated";
  const meter = svg(
    "svg",
    { class: "meter", width: 60, height: 10, "aria-hidden": "true", focusable: "false" },
    svg("rect", { width: 60, height: 10, rx: 2, class: "meter-track" }),
    svg("rect", { width: (60 * p).toFixed(1), height: 10, rx: 2, class: "meter-fill" }),
  );
  return h("span", { class: "sure" }, meter, probability(p));
}

/** Arms on a circle, arrows bent so that both directions are seen. */
function draw(outlook, edges, strength) {
  const box = byId("graph-drawing");
  const arms = untangled(armsOf(outlook, edges), edges);
  if (!edges.length || arms.length < 2) return replace(box);
  const width = Math.max(280, Math.min(box.clientWidth || 600, 640));
  const longest = Math.max(...arms.map((arm) => [...printable(arm.arm)].length));
  const room = Math.min(BESIDE + LETTER * longest, width * 0.3, 140);
  const height = Math.min(width * 0.86, 460);
  const centre = { x: width / 2, y: height / 2 };
  const radius = { x: width / 2 - room, y: height / 2 - 40 };
  const turns = arms.map((arm, k) => (2 * Math.PI * k) / arms.length - Math.PI / 2);
  const [across, down] = [filling(turns.map(Math.cos)), filling(turns.map(Math.sin))];
  const spots = new Map(
    arms.map((arm, k) => [
      arm.arm,
      {
        x: centre.x + radius.x * across[k],
        y: centre.y + radius.y * down[k],
        cos: across[k],
        sin: down[k],
        chosen: arm.chosen,
      },
    ]),
  );
  const drawn = edges.filter((edge) => spots.has(edge.from) && spots.has(edge.to) && edge.from !== edge.to);
  const arrows = drawn.map((edge) => arrowOf(edge, spots, strength));
  const labels = labelsOf(arrows.slice(0, MOST_LABELS), arrows, [...spots.values()]);
  const picture = svg(
    "svg",
    {
      class: "graph",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": "Graph of the arms; the table has the same edges",
    },
    arrows.map((arrow) => arrow.line),
    [...spots].map(([arm, spot]) => nodeOf(arm, spot, room)),
    labels,
  );
  replace(
    box,
    picture,
    arms.length < outlook.reasons.arms.length &&
      h("p", { class: "small" }, `Shown: the ${arms.length} arms with the strongest edges.`),
  );
}

/** Numbers stretched to the range from -1 to 1. */
function filling(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => (high - low < 1e-9 ? 0 : (2 * (value - low)) / (high - low) - 1));
}

function armsOf(outlook, edges) {
  const all = [...outlook.reasons.arms].sort((one, other) => one.position - other.position);
  if (all.length <= MOST_ARMS) return all;
  const strongest = new Set();
  for (const edge of edges) {
    if (strongest.size + 2 > MOST_ARMS) break;
    strongest.add(edge.from).add(edge.to);
  }
  return all.filter((arm) => strongest.has(arm.arm));
}

/** The same arms in an order in which fewer arrows cross: places are exchanged as long as that helps. */
function untangled(arms, edges) {
  const order = [...arms];
  const cost = () => {
    const place = new Map(order.map((arm, k) => [arm.arm, k]));
    const chords = edges
      .slice(0, 60)
      .filter((edge) => place.has(edge.from) && place.has(edge.to))
      .map((edge) => [place.get(edge.from), place.get(edge.to)].sort((one, other) => one - other));
    const lengths = chords.reduce((sum, [a, b]) => sum + Math.min(b - a, order.length - b + a), 0);
    const crossings = chords.reduce(
      (sum, [a, b], k) =>
        sum + chords.slice(k + 1).filter(([c, d]) => (a < c && c < b && b < d) || (c < a && a < d && d < b)).length,
      0,
    );
    return 10 * crossings + lengths;
  };
  let best = cost();
  for (let sweep = 0, better = true; better && sweep < 4; sweep += 1) {
    better = false;
    for (let i = 0; i < order.length; i += 1) {
      for (let k = i + 1; k < order.length; k += 1) {
        [order[i], order[k]] = [order[k], order[i]];
        const now = cost();
        if (now < best) [best, better] = [now, true];
        else [order[i], order[k]] = [order[k], order[i]];
      }
    }
  }
  return order;
}

function nodeOf(arm, spot, room) {
  const side = spot.cos > 0.25 ? "start" : spot.cos < -0.25 ? "end" : "middle";
  const label = {
    x: spot.x + BESIDE * Math.sign(side === "middle" ? 0 : spot.cos),
    y: spot.y + (side === "middle" ? (spot.sin > 0 ? 28 : -18) : 5),
  };
  const text = printable(arm);
  const fits = Math.max(6, Math.floor((room - BESIDE) / LETTER));
  const short = [...text].length > fits && side !== "middle" ? `${[...text].slice(0, fits - 1).join("")}\u2026` : text;
  return svg(
    "g",
    {},
    svg("title", {}, arm),
    svg("circle", { cx: spot.x, cy: spot.y, r: 10, class: spot.chosen ? "node chosen" : "node" }),
    svg(
      "text",
      { x: label.x, y: label.y, "text-anchor": side, class: spot.chosen ? "node-name chosen" : "node-name" },
      short,
    ),
  );
}

function arrowOf(edge, spots, strength) {
  const [from, to] = [spots.get(edge.from), spots.get(edge.to)];
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const bend = { x: (from.x + to.x) / 2 - dy * 0.14, y: (from.y + to.y) / 2 + dx * 0.14 };
  const wide = 1.2 + 5.5 * Math.min(1, Math.abs(edge.weight) / strength);
  const toward = (spot, away) => {
    const [ex, ey] = [bend.x - spot.x, bend.y - spot.y];
    const size = Math.hypot(ex, ey) || 1;
    return { x: spot.x + (ex / size) * away, y: spot.y + (ey / size) * away, ux: ex / size, uy: ey / size };
  };
  const spot = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const head = 7 + wide;
  const [start, tip] = [toward(from, 13), toward(to, 13)];
  const neck = { x: tip.x + tip.ux * head, y: tip.y + tip.uy * head };
  const sure = edge.probability === null || edge.probability >= SURE;
  const kind = `edge${sure ? "" : " unsure"}${edge.weight < 0 ? " negative" : ""}`;
  const wing = (sign) =>
    `${(neck.x - sign * tip.uy * head * 0.55).toFixed(1)} ${(neck.y + sign * tip.ux * head * 0.55).toFixed(1)}`;
  const line = svg(
    "g",
    { class: kind },
    svg(
      "title",
      {},
      `${edge.from} to ${edge.to}: ${number(edge.weight, edge.interval)}, ${probability(edge.probability)} sure`,
    ),
    svg("path", {
      d: `M${spot(start)} Q${spot(bend)} ${spot(neck)}`,
      "stroke-width": wide.toFixed(1),
      "stroke-dasharray": sure ? null : "5 4",
      class: "edge-line",
    }),
    svg("path", { d: `M${tip.x.toFixed(1)} ${tip.y.toFixed(1)} L${wing(1)} L${wing(-1)} Z`, class: "edge-head" }),
  );
  const at = (t) =>
    ["x", "y"].map((axis) => (1 - t) ** 2 * start[axis] + 2 * t * (1 - t) * bend[axis] + t ** 2 * neck[axis]);
  return {
    line,
    at,
    words: `${number(edge.weight, edge.interval)}${sure ? "" : ` (${probability(edge.probability)})`}`,
  };
}

/** Each label where its arrow is farthest from all other arrows, arms and labels. */
function labelsOf(labelled, arrows, spots) {
  const taken = spots.map((spot) => [spot.x, spot.y]);
  return labelled.map((arrow) => {
    const others = arrows
      .filter((other) => other !== arrow)
      .flatMap((other) => [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1].map(other.at));
    const room = ([x, y]) => Math.min(...[...others, ...taken].map(([ox, oy]) => Math.hypot(0.6 * (x - ox), y - oy)));
    const best = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26]
      .map(arrow.at)
      .reduce((one, other) => (room(other) > room(one) + 2 ? other : one));
    taken.push(best);
    return svg(
      "text",
      {
        x: best[0].toFixed(1),
        y: (best[1] + 4).toFixed(1),
        class: "edge-label",
        "text-anchor": "middle",
        "aria-hidden": "true",
      },
      arrow.words,
    );
  });
}
