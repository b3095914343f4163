// The chart of payoffs, beside what was predicted.

import { axis, colours, CONFIG, layout, marks, plain } from "./charts.js";
import { byId, show } from "./dom.js";
import { short } from "./words.js";

export function drawPayoff(Plotly, rounds, changes) {
  const box = byId("payoff");
  const shown = rounds.filter((line) => line.payoff !== null || line.predicted !== null);
  show(box, shown.length > 0);
  if (!shown.length) return;
  const { direct, spill, soft } = colours();
  const [places, words] = [
    shown.map((line) => line.round),
    shown.map((line) => `${plain(line.round)}: ${short(line.payoff)}; predicted ${short(line.predicted)}`),
  ];
  const data = [
    {
      x: places,
      y: shown.map((line) => line.payoff),
      name: "payoff",
      mode: "lines+markers",
      line: { color: direct, width: 2 },
      marker: { color: direct, size: 6 },
      connectgaps: false,
      hoverinfo: "text",
      hovertext: words,
    },
    {
      x: places,
      y: shown.map((line) => line.predicted),
      name: "predicted",
      mode: "lines+markers",
      line: { color: spill, width: 2, dash: "dash" },
      marker: { color: spill, size: 6, symbol: "diamond-open" },
      connectgaps: false,
      hoverinfo: "text",
      hovertext: words,
    },
  ];
  const extra = {
    height: 300,
    xaxis: axis({
      type: "category",
      categoryorder: "array",
      categoryarray: places,
      nticks: Math.max(3, Math.floor(box.clientWidth / 110)),
      tickangle: 0,
      showgrid: false,
    }),
    yaxis: axis({ nticks: 6 }),
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: soft } },
    shapes: marks(changes.filter((round) => places.includes(round))),
  };
  Plotly.react(
    box,
    data.filter((trace) => trace.y.some((value) => value !== null)),
    layout(extra),
    CONFIG,
  );
}
