// Charts by plotly.js, which is loaded from this server when the first chart is drawn.

import { printable } from "./dom.js";

let loading = null;

/** plotly.js; loaded once. */
export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/assets/plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(new Error("the charts could not be loaded"));
    };
    document.head.append(script);
  });
  return loading;
}

/** Colours of the page as it looks now, light or dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: read("text"),
    soft: read("soft"),
    line: read("line"),
    direct: read("direct"),
    spill: read("spill"),
    band: read("band"),
    card: read("card"),
    change: read("change"),
  };
}

/** Text for plotly, which reads tags, entities and formulas in text: here nothing is any of them. */
export function plain(text) {
  return printable(text).replace(/[&<>$]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" })[sign]);
}

export const CONFIG = {
  displayModeBar: false,
  responsive: false,
  staticPlot: false,
  scrollZoom: false,
  doubleClick: "reset",
};

export function layout(extra) {
  const { text } = colours();
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: text };
  return {
    font,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: 30, b: 42 },
    hovermode: "closest",
    dragmode: false,
    ...extra,
  };
}

export function axis(extra = {}) {
  const { line, soft } = colours();
  return {
    gridcolor: line,
    linecolor: soft,
    zerolinecolor: soft,
    tickcolor: soft,
    automargin: true,
    fixedrange: true,
    ...extra,
  };
}

/** Vertical lines at places on an axis. */
export function marks(places, axes = { xref: "x", yref: "paper" }) {
  const { change } = colours();
  return places.map((x) => ({
    type: "line",
    ...axes,
    x0: x,
    x1: x,
    y0: 0,
    y1: 1,
    line: { color: change, width: 1.5, dash: "dot" },
  }));
}
