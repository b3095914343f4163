// The chart of estimates: a panel for each arm, its effect with the credible band, changes marked.

import { axis, colours, CONFIG, layout, marks, plain } from "./charts.js";
import { byId, show } from "./dom.js";
import { interval, number } from "./words.js";

export function drawBands(Plotly, series, changes) {
  const box = byId("bands");
  const filled = series.filter((one) => one.points.length);
  show(box, filled.length > 0);
  if (!filled.length) return;
  const across = Math.max(1, Math.min(3, filled.length, Math.floor(box.clientWidth / 260)));
  const down = Math.ceil(filled.length / across);
  const places = [...new Set(filled.flatMap((one) => one.points.map((point) => point.round)))];
  const ends = filled.flatMap((one) => one.points.flatMap((point) => point.interval ?? [point.total]));
  const reach = [Math.min(0, ...ends), Math.max(...ends)];
  const [room, data, extra] = [(reach[1] - reach[0] || 1) * 0.06, [], { shapes: [], annotations: [] }];
  filled.forEach((one, k) => {
    const [row, column] = [Math.floor(k / across), k % across];
    const id = k ? String(k + 1) : "";
    const [gapX, gapY] = [0.05, 34 / (down * 165)];
    const lowest = k + across >= filled.length;
    const wide = (1 - gapX * (across - 1)) / across;
    const high = (1 - gapY * (down - 1)) / down;
    const [left, top] = [column * (wide + gapX), 1 - row * (high + gapY)];
    const bottom = Math.max(0, top - high);
    extra[`xaxis${id}`] = axis({
      type: "category",
      categoryarray: places,
      categoryorder: "array",
      domain: [left, left + wide],
      anchor: `y${id}`,
      nticks: 3,
      tickangle: 0,
      showgrid: false,
      showticklabels: lowest,
      range: [-0.5, places.length - 0.5],
    });
    extra[`yaxis${id}`] = axis({
      domain: [bottom, top],
      anchor: `x${id}`,
      nticks: 5,
      range: [reach[0] - room, reach[1] + room],
      showticklabels: column === 0,
    });
    extra.annotations.push({
      text: plain(one.arm),
      xref: "paper",
      yref: "paper",
      x: left,
      y: top,
      xanchor: "left",
      yanchor: "bottom",
      showarrow: false,
      font: { size: 13, weight: 700 },
    });
    extra.shapes.push(
      ...marks(
        changes.filter((round) => places.includes(round)),
        { xref: `x${id}`, yref: `y${id} domain` },
      ),
    );
    data.push(...tracesOf(one, id));
  });
  Plotly.react(
    box,
    data,
    layout({ ...extra, height: 165 * down + 60, showlegend: false, margin: { l: 44, r: 8, t: 26, b: 34 } }),
    CONFIG,
  );
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
