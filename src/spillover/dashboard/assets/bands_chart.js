// The chart of estimates: a panel for each arm, its effect with the credible band, changes marked.

import { axis, colours, CONFIG, layout, marks, plain } from "./charts.js";
import { byId, show } from "./dom.js";
import { interval, number } from "./words.js";

const [GAP, PANEL] = [0.05, 165]; // between panels, as a share of the width; height of a panel in pixels

export function drawBands(Plotly, series, changes) {
  const box = byId("bands");
  const filled = series.filter((one) => one.points.length);
  show(box, filled.length > 0);
  if (!filled.length) return;
  const across = Math.max(1, Math.min(3, filled.length, Math.floor(box.clientWidth / 260)));
  const grid = { across, down: Math.ceil(filled.length / across), panels: filled.length };
  const places = [...new Set(filled.flatMap((one) => one.points.map((point) => point.round)))];
  const marked = changes.filter((round) => places.includes(round));
  const extra = { shapes: [], annotations: [] };
  filled.forEach((one, k) => addPanel(extra, { k, name: one.arm, grid, places, reach: reachOf(filled), marked }));
  const data = filled.flatMap((one, k) => tracesOf(one, idOf(k)));
  const size = { height: PANEL * grid.down + 60, margin: { l: 44, r: 8, t: 26, b: 34 } };
  Plotly.react(box, data, layout({ ...extra, ...size, showlegend: false }), CONFIG);
}

const idOf = (k) => (k ? String(k + 1) : "");

/** The range that all panels share, with some room. */
function reachOf(series) {
  const ends = series.flatMap((one) => one.points.flatMap((point) => point.interval ?? [point.total]));
  const [low, high] = [Math.min(0, ...ends), Math.max(...ends)];
  const room = (high - low || 1) * 0.06;
  return [low - room, high + room];
}

/** The axes, the title and the marks of the k-th panel. */
function addPanel(extra, { k, name, grid, places, reach, marked }) {
  const [row, column, id] = [Math.floor(k / grid.across), k % grid.across, idOf(k)];
  const gap = 34 / (grid.down * PANEL);
  const [wide, high] = [(1 - GAP * (grid.across - 1)) / grid.across, (1 - gap * (grid.down - 1)) / grid.down];
  const [left, top] = [column * (wide + GAP), 1 - row * (high + gap)];
  extra[`xaxis${id}`] = axis({
    type: "category",
    categoryarray: places,
    categoryorder: "array",
    domain: [left, left + wide],
    anchor: `y${id}`,
    nticks: 3,
    tickangle: 0,
    showgrid: false,
    showticklabels: k + grid.across >= grid.panels,
    range: [-0.5, places.length - 0.5],
  });
  const domain = [Math.max(0, top - high), top];
  extra[`yaxis${id}`] = axis({ domain, anchor: `x${id}`, nticks: 5, range: reach, showticklabels: column === 0 });
  const place = { xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom" };
  extra.annotations.push({ text: plain(name), ...place, showarrow: false, font: { size: 13, weight: 700 } });
  extra.shapes.push(...marks(marked, { xref: `x${id}`, yref: `y${id} domain` }));
}

function tracesOf({ arm, points }, id) {
  const { direct, band, card } = colours();
  const on = { xaxis: `x${id}`, yaxis: `y${id}`, hoverinfo: "skip" };
  const rounds = points.map((point) => point.round);
  const [low, high] = [0, 1].map((end) => points.map((point) => point.interval?.[end] ?? null));
  const alone = points.length === 1;
  const bands = alone
    ? []
    : [
        { ...on, x: rounds, y: low, mode: "lines", line: { width: 0 } },
        { ...on, x: rounds, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: band },
      ];
  const error =
    alone && points[0].interval
      ? {
          error_y: {
            type: "data",
            symmetric: false,
            array: [high[0] - points[0].total],
            arrayminus: [points[0].total - low[0]],
            color: direct,
          },
        }
      : {};
  const words = points.map(
    (point) =>
      `${plain(arm)}, ${point.now ? "now" : plain(point.round)}: ${number(point.total, point.interval)} ` +
      `(${interval(point.interval)})<br>${point.chosen ? "chosen" : "not chosen"}`,
  );
  const dots = {
    size: points.length > 60 ? 4 : 7,
    color: points.map((point) => (point.chosen ? direct : card)),
    line: { color: direct, width: 1.5 },
  };
  return [
    ...bands,
    {
      ...on,
      ...error,
      x: rounds,
      y: points.map((point) => point.total),
      mode: "lines+markers",
      line: { color: direct, width: 2 },
      marker: dots,
      hoverinfo: "text",
      hovertext: words,
    },
  ];
}
