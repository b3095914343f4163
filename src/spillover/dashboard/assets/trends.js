// What changed: the estimated effect of each arm over time, and the payoff against what was predicted.

import { drawBands } from "./bands_chart.js";
import { plotly } from "./charts.js";
import { byId, named, replace, show, table } from "./dom.js";
import { drawPayoff } from "./payoff_chart.js";
import { count, interval, number, rough, short } from "./words.js";

const FIRST = 6;
let all = false;
let latest = null;

/** course: the estimates after rounds that were not decided here, such as those of a file; null otherwise. */
export async function renderTrends(overview, outlook, course) {
  latest = { overview, outlook, course };
  const changes = changesOf(
    course ? course.rounds.map((round, k) => ({ round, changes: course.changes[k] })) : overview.rounds,
  );
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
  return rounds
    .filter(({ changes }) => {
      const more = changes !== null && before !== null && changes > before;
      if (changes !== null) before = changes;
      return more;
    })
    .map((line) => line.round);
}

/** The arms of the coming choice first, then by score. */
function armsToShow(overview, outlook) {
  const arms = outlook ? outlook.reasons.arms.map((arm) => arm.arm) : overview.settings.arms;
  const more = byId("bands-more");
  replace(more, `Show all ${count(arms.length, "arm")}`);
  show(more, arms.length > FIRST && !all);
  more.onclick = () => {
    all = true;
    redrawTrends();
  };
  return all ? arms.slice(0, 60) : arms.slice(0, FIRST);
}

function seriesOf(arm, overview, outlook, course) {
  const known = course ? pointsOf(course, arm, overview.rounds) : (overview.bands[arm] ?? []);
  const points = known.filter((point) => point.total !== null);
  const now = outlook?.reasons.arms.find((one) => one.arm === arm);
  if (now?.total_interval) {
    points.push({
      round: outlook.round ?? "now",
      total: now.direct + now.spilled_over,
      interval: now.total_interval,
      chosen: now.chosen,
      now: true,
    });
  }
  return { arm, points };
}

function pointsOf(course, arm, rounds) {
  const chosen = new Map(rounds.map((line) => [line.round, line.chosen.includes(arm)]));
  return course.rounds.map((round, k) => ({ round, ...course.arms[arm][k], chosen: chosen.get(round) ?? false }));
}

/** The same in words and tables. */
function tables(overview, series, changes, course) {
  const noticed = changes.length
    ? `Changes of the world were noticed before ${changes.slice(-5).join(", ")} (dotted lines).`
    : "No change of the world was noticed.";
  const when = course ? "after the rounds of the file" : "at each decision";
  const some = series.some((one) => one.points.length);
  const decided = overview.rounds.some((line) => line.predicted !== null);
  replace(
    byId("bands-words"),
    some
      ? `Expected total effect of choosing the arm, as it was estimated ${when}, with its 95% credible band. ` +
          `Filled dots: the arm was chosen. ${noticed}`
      : "The policy of this stream gives no intervals, or nothing is known yet.",
  );
  replace(
    byId("bands-table"),
    table(
      ["Round", "Arm", "Effect", "95% interval", "Chosen"],
      series.flatMap((one) =>
        one.points
          .slice(-30)
          .map((point) => [
            point.now ? "now" : named(point.round),
            named(one.arm),
            number(point.total, point.interval),
            interval(point.interval),
            point.chosen ? "yes" : "no",
          ]),
      ),
    ),
  );
  const known = overview.rounds.filter((line) => line.payoff !== null);
  const pairs = known.filter((line) => line.predicted !== null);
  const off = pairs.length
    ? pairs.reduce((sum, line) => sum + Math.abs(line.payoff - line.predicted), 0) / pairs.length
    : null;
  replace(
    byId("payoff-words"),
    known.length
      ? [
          `The sum of all outcomes of each complete round. `,
          off === null
            ? decided
              ? "No predicted round is complete yet."
              : "Rounds that were decided here also have a prediction."
            : `Over ${count(pairs.length, "round")}, predictions were off by ${rough(off)} on average.`,
        ]
      : "No round is complete yet.",
  );
  replace(
    byId("payoff-table"),
    table(
      ["Round", "Payoff", "Predicted", "Noticed"],
      overview.rounds
        .filter((line) => line.payoff !== null || line.predicted !== null)
        .slice(-100)
        .reverse()
        .map((line) => [
          named(line.round),
          short(line.payoff),
          short(line.predicted),
          changes.includes(line.round) ? "a change" : "",
        ]),
    ),
  );
}
