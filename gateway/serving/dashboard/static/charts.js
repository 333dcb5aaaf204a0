// The two charts above the list of reviews. What they show stands beside them in words: a canvas cannot be read aloud.

import uPlot from "./vendor/uplot/uPlot.esm.js";

import { el } from "./dom.js";
import { clock } from "./numbers.js";

const HEIGHT = 150;
const OUTCOMES = ["allowed", "denied", "failed"];
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * A chart with one series for each outcome. Options of uPlot: `scales` and the `axis` of x, and the `series` of each.
 * data(): the values of x, and those of each outcome; unit: of the values. It is drawn when it is mounted.
 */
function chart(title, unit, options, data) {
  const area = el("div", { class: "chart", "aria-hidden": "true" });
  let plot = null;

  function draw() {
    plot?.destroy();
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    plot = new uPlot(
      {
        width: area.clientWidth || 400,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { ...options.scales, y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
        axes: [{ ...axis, ...options.axis }, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => `${tick}${unit}`) }],
        series: [{}, ...OUTCOMES.map((outcome) => ({ stroke: colour(outcome), width: 2, ...options.series(colour(outcome)) }))],
      },
      data(),
      area,
    );
  }

  const resize = new ResizeObserver(() => plot?.setSize({ width: area.clientWidth, height: HEIGHT }));
  return {
    element: el("figure", {}, el("figcaption", {}, title), area),
    mount() {
      draw();
      resize.observe(area);
      dark.addEventListener("change", draw);
    },
    update() {
      plot?.setData(data());
    },
    destroy() {
      dark.removeEventListener("change", draw);
      resize.disconnect();
      plot?.destroy();
      plot = null;
    },
  };
}

/** From where to where a chart with these times goes: at least a minute, to the last of them, or to now. */
export function timeRange(times, now = Date.now() / 1000) {
  const last = times.at(-1) ?? now;
  return [Math.min(times[0] ?? last, last - 60), last];
}

/** The reviews of each outcome per second, over time. */
export function rateChart(numbers) {
  const options = {
    // Of one time, uPlot would make a day.
    scales: { x: { range: (plot) => timeRange(plot.data[0]) } },
    axis: { values: (_, ticks) => ticks.map((tick) => clock(tick).slice(0, 8)), space: 80 },
    series: () => ({ points: { show: false } }),
  };
  return chart("Reviews per second (times in UTC)", "", options, () => rates(numbers()));
}

/** The duration of recent reviews, from the oldest to the newest. */
export function durationChart(reviews) {
  const options = {
    scales: { x: { time: false } },
    axis: { values: (_, ticks) => ticks.map(() => "") },
    series: (fill) => ({ paths: () => null, points: { show: true, size: 7, fill } }),
  };
  return chart("Duration of recent reviews, the newest on the right", " ms", options, () => durations(reviews()));
}

/** The reviews of each outcome per second, between each two records of numbers. */
export function rates(numbers) {
  const pairs = numbers.slice(1).map((after, index) => [after, numbers[index]]);
  return [
    pairs.map(([after]) => after.time),
    ...OUTCOMES.map((outcome) =>
      pairs.map(([after, before]) => (after.outcomes[outcome] - before.outcomes[outcome]) / (after.time - before.time || 1)),
    ),
  ];
}

/** The duration of each review in milliseconds, in order; `reviews` begin with the newest. */
export function durations(reviews) {
  const ordered = reviews.toReversed();
  return [ordered.map((_, index) => index), ...OUTCOMES.map((outcome) => ordered.map((each) => (each.outcome === outcome ? each.milliseconds : null)))];
}
