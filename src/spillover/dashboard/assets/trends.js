// What changed: the estimated effect of each arm over time, and the payoff against what was predicted.

import { axis, colours, CONFIG, layout, marks, plain, plotly } from "./charts.js";
import { byId, named, replace, show, table } from "./dom.js";
import { count, interval, number, rough, short } from "./words.js";

const FIRST = 6;
let all = false;
let latest = null;

/** course: the estimates after rounds that were not decided here, such as those of a file; null otherwise. */
export async function renderTrends(overview, outlook, course) {
  latest = { overview, outlook, course };
  const changes = changesOf(course ? course.rounds.map((round, k) => ({ round, changes: course.changes[k] })) : overview.rounds);
  const arms = armsToShow(overview, outlook);
  const series = arms.map((arm) => seriesOf(arm, overview, outlook, course));
  tables(overview, series, changes, course);
  const drawn = await plotly().catch(() => null);
  if (!drawn || latest.overview !== overview) return;
  drawBands(drawn, series, changes);
  drawPayoff(drawn, overview.rounds, changes);
}

/** Draw again, in the colours and the width that hold now. */
export const redrawTrends = () => latest && renderTrends(latest.overview, latest.outlook, latest.course);

/** The rounds before which a change of the world was noticed. */
export function changesOf(rounds) {
  let before = null;
  return rounds.filter(({ changes }) => {
    const more = changes !== null && before !== null && changes > before;
    if (changes !== null) before = changes;
    return more;
  }).map((line) => line.round);
}

/** The arms of the coming choice first, then by score. */
function armsToShow(overview, outlook) {
  const arms = outlook ? outlook.reasons.arms.map((arm) => arm.arm) : overview.settings.arms;
  const more = byId("bands-more");
  replace(more, `Show all ${count(arms.length, "arm")}`);
  show(more, arms.length > FIRST && !all);
  more.onclick = () => { all = true; redrawTrends(); };
  return all ? arms.slice(0, 60) : arms.slice(0, FIRST);
}

function seriesOf(arm, overview, outlook, course) {
  const known = course ? pointsOf(course, arm, overview.rounds) : overview.bands[arm] ?? [];
  const points = known.filter((point) => point.total !== null);
  const now = outlook?.reasons.arms.find((one) => one.arm === arm);
  if (now?.total_interval) {
    points.push({ round: outlook.round ?? "now", total: now.direct + now.spilled_over, interval: now.total_interval, chosen: now.chosen, now: true });
  }
  return { arm, points };
}

function pointsOf(course, arm, rounds) {
  const chosen = new Map(rounds.map((line) => [line.round, line.chosen.includes(arm)]));
  return course.rounds.map((round, k) => ({ round, ...course.arms[arm][k], chosen: chosen.get(round) ?? false }));
}

function drawBands(Plotly, series, changes) {
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
    extra[`xaxis${id}`] = axis({ type: "category", categoryarray: places, categoryorder: "array", domain: [left, left + wide], anchor: `y${id}`, nticks: 3, tickangle: 0, showgrid: false, showticklabels: lowest, range: [-0.5, places.length - 0.5] });
    extra[`yaxis${id}`] = axis({ domain: [bottom, top], anchor: `x${id}`, nticks: 5, range: [reach[0] - room, reach[1] + room], showticklabels: column === 0 });
    extra.annotations.push({ text: plain(one.arm), xref: "paper", yref: "paper", x: left, y: top, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13, weight: 700 } });
    extra.shapes.push(...marks(changes.filter((round) => places.includes(round)), { xref: `x${id}`, yref: `y${id} domain` }));
    data.push(...tracesOf(one, id));
  });
  Plotly.react(box, data, layout({ ...extra, height: 165 * down + 60, showlegend: false, margin: { l: 44, r: 8, t: 26, b: 34 } }), CONFIG);
}

function tracesOf({ arm, points }, id) {
  const { direct, band, card } = colours();
  const on = { xaxis: `x${id}`, yaxis: `y${id}`, hoverinfo: "skip" };
  const rounds = points.map((point) => point.round);
  const [low, high] = [0, 1].map((end) => points.map((point) => point.interval?.[end] ?? null));
  const alone = points.length === 1;
  const bands = alone ? [] : [{ ...on, x: rounds, y: low, mode: "lines", line: { width: 0 } }, { ...on, x: rounds, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: band }];
  const error = alone && points[0].interval ? { error_y: { type: "data", symmetric: false, array: [high[0] - points[0].total], arrayminus: [points[0].total - low[0]], color: direct } } : {};
  const words = points.map((point) => `${plain(arm)}, ${point.now ? "now" : plain(point.round)}: ${number(point.total, point.interval)} (${interval(point.interval)})<br>${point.chosen ? "chosen" : "not chosen"}`);
  const dots = { size: points.length > 60 ? 4 : 7, color: points.map((point) => (point.chosen ? direct : card)), line: { color: direct, width: 1.5 } };
  return [...bands, { ...on, ...error, x: rounds, y: points.map((point) => point.total), mode: "lines+markers", line: { color: direct, width: 2 }, marker: dots, hoverinfo: "text", hovertext: words }];
}

function drawPayoff(Plotly, rounds, changes) {
  const box = byId("payoff");
  const shown = rounds.filter((line) => line.payoff !== null || line.predicted !== null);
  show(box, shown.length > 0);
  if (!shown.length) return;
  const { direct, spill, soft } = colours();
  const [places, words] = [shown.map((line) => line.round), shown.map((line) => `${plain(line.round)}: ${short(line.payoff)}; predicted ${short(line.predicted)}`)];
  const data = [
    { x: places, y: shown.map((line) => line.payoff), name: "payoff", mode: "lines+markers", line: { color: direct, width: 2 }, marker: { color: direct, size: 6 }, connectgaps: false, hoverinfo: "text", hovertext: words },
    { x: places, y: shown.map((line) => line.predicted), name: "predicted", mode: "lines+markers", line: { color: spill, width: 2, dash: "dash" }, marker: { color: spill, size: 6, symbol: "diamond-open" }, connectgaps: false, hoverinfo: "text", hovertext: words },
  ];
  const extra = { height: 300, xaxis: axis({ type: "category", categoryorder: "array", categoryarray: places, nticks: Math.max(3, Math.floor(box.clientWidth / 110)), tickangle: 0, showgrid: false }), yaxis: axis({ nticks: 6 }),
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: soft } }, shapes: marks(changes.filter((round) => places.includes(round))) };
  Plotly.react(box, data.filter((trace) => trace.y.some((value) => value !== null)), layout(extra), CONFIG);
}

/** The same in words and tables. */
function tables(overview, series, changes, course) {
  const noticed = changes.length ? `Changes of the world were noticed before ${changes.slice(-5).join(", ")} (dotted lines).` : "No change of the world was noticed.";
  const some = series.some((one) => one.points.length);
  const decided = overview.rounds.some((line) => line.predicted !== null);
  replace(byId("bands-words"), some ? `Expected total effect of choosing the arm, as it was estimated ${course ? "after the rounds of the file" : "at each decision"}, with its 95% credible band. Filled dots: the arm was chosen. ${noticed}`
    : "The policy of this stream gives no intervals, or nothing is known yet.");
  replace(byId("bands-table"), table(["Round", "Arm", "Effect", "95% interval", "Chosen"], series.flatMap((one) => one.points.slice(-30).map((point) =>
    [point.now ? "now" : named(point.round), named(one.arm), number(point.total, point.interval), interval(point.interval), point.chosen ? "yes" : "no"]))));
  const known = overview.rounds.filter((line) => line.payoff !== null);
  const pairs = known.filter((line) => line.predicted !== null);
  const off = pairs.length ? pairs.reduce((sum, line) => sum + Math.abs(line.payoff - line.predicted), 0) / pairs.length : null;
  replace(byId("payoff-words"), known.length ? [`The sum of all outcomes of each complete round. `, off === null ? decided ? "No predicted round is complete yet." : "Rounds that were decided here also have a prediction." : `Over ${count(pairs.length, "round")}, predictions were off by ${rough(off)} on average.`]
    : "No round is complete yet.");
  replace(byId("payoff-table"), table(["Round", "Payoff", "Predicted", "Noticed"], overview.rounds.filter((line) => line.payoff !== null || line.predicted !== null).slice(-100).reverse()
    .map((line) => [named(line.round), short(line.payoff), short(line.predicted), changes.includes(line.round) ? "a change" : ""])));
}
