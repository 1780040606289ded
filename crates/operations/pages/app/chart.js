// Time series: uPlot in the page's colours.
import uPlot from "../vendor/uplot.js";
import { html, useEffect, useLayoutEffect, useRef } from "./lib.js";
import { color, useTheme } from "./theme.js";
import { clock } from "./format.js";

const FONT = "11px system-ui, sans-serif";
const HEIGHT = 190;

/** A share of one colour over another, both as #rrggbb: stacked series hide what is behind them. */
function mixed(one, other, share) {
  const channel = (hex, at) => parseInt(hex.slice(at, at + 2), 16);
  const mix = (at) => Math.round(channel(one, at) * share + channel(other, at) * (1 - share));
  return `rgb(${mix(1)}, ${mix(3)}, ${mix(5)})`;
}

/** Where a logarithmic axis has its lines. */
function powersOfTen(_, axis, low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-6);
  const count = Math.max(0, Math.floor(Math.log10(high) + 1e-6) - first + 1);
  return Array.from({ length: count }, (_, step) => 10 ** (first + step));
}

/** Values without neighbours, which no line shows. */
function alone(plot, at) {
  const values = plot.data[at];
  const there = (index) => values[index] !== null && values[index] !== undefined;
  return values.flatMap((_, index) => (there(index) && !there(index - 1) && !there(index + 1) ? [index] : []));
}

/** Whole powers of ten; from a microsecond to ten milliseconds while there is nothing. */
const decades = (_, low, high) => (low === null || low === undefined ? [1e3, 1e7] : uPlot.rangeLog(low, high, 10, true));

/** Steps of an axis for bytes. */
const POWERS_OF_TWO = Array.from({ length: 48 }, (_, power) => 2 ** power);

function options(width, { series, format, stacked, log, binary, max }) {
  const axis = {
    stroke: color("text-faint"),
    font: FONT,
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
  };
  const line = ({ label, tone, fill }) => ({
    label,
    stroke: color(tone),
    width: 1.75,
    fill: stacked ? mixed(color(tone), color("panel"), 0.42) : fill ? `${color(tone)}22` : undefined,
    points: { show: Boolean(log), size: 5, fill: color(tone), filter: alone },
    value: (_, value, at, index) => (value === null ? "–" : format(index === null ? 0 : unstacked(_, at, index))),
  });
  const unstacked = (plot, at, index) => plot.data[at][index] - (stacked && at < series.length ? plot.data[at + 1][index] : 0);
  return {
    width,
    height: HEIGHT,
    padding: [10, 8, 0, 0],
    cursor: { sync: { key: "live" }, drag: { x: false, y: false }, points: { size: 6 } },
    legend: { live: true },
    scales: {
      x: { time: true },
      y: { distr: log ? 3 : 1, range: log ? decades : (_, low, high) => [0, Math.max(max ?? 0, high * 1.08, 1)] },
    },
    axes: [
      { ...axis, size: 26, space: 90, values: (_, ticks) => ticks.map((tick) => clock(tick * 1000).slice(0, 8)) },
      { ...axis, size: 66, incrs: binary ? POWERS_OF_TWO : undefined, space: 34, ...(log ? { splits: powersOfTen, filter: (_, splits) => splits } : {}), values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick))) },
    ],
    series: [{ label: "at", value: (_, value) => (value === null ? "–" : clock(value * 1000)) }, ...series.map(line)],
  };
}

/** Each series above the ones behind it. */
function stack(columns) {
  const [times, ...rest] = columns;
  const sums = times.map(() => 0);
  const stacked = rest.reverse().map((column) => column.map((value, at) => (sums[at] += value ?? 0)));
  return [times, ...stacked.reverse()];
}

/**
 * A chart. `data` is `[seconds, values of the first series, ...]`, `series` their labels and colours.
 */
export function Chart({ title, note, data, ...rest }) {
  const box = useRef(null);
  const plot = useRef(null);
  const theme = useTheme();
  const columns = rest.stacked ? stack(data) : data;
  const names = rest.series.map((series) => series.label).join();
  useLayoutEffect(() => {
    const made = new uPlot(options(box.current.clientWidth, rest), columns, box.current);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [theme, names]);
  useEffect(() => {
    plot.current.setData(columns);
    // While nobody points at a moment, the legend shows the last one.
    if (plot.current.cursor.left < 0) plot.current.setLegend({ idx: columns[0].length - 1 });
  }, [data, theme, names]);
  const description = `${title}: ${rest.series.map((series) => series.label).join(", ")}`;
  return html`<section class="card chart">
    <header><h2>${title}</h2>${note && html`<span class="note">${note}</span>`}</header>
    <div ref=${box} role="img" aria-label=${description}></div>
  </section>`;
}

/** A small line without axes. */
export function Spark({ values, tone }) {
  const width = 120;
  const height = 30;
  const shown = values.slice(-120);
  const high = Math.max(...shown, 1);
  const step = width / Math.max(shown.length - 1, 1);
  const point = (value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / high) * (height - 4)).toFixed(1)}`;
  const line = shown.map(point).join(" ");
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" aria-hidden="true">
    <polygon points=${`0,${height} ${line} ${width},${height}`} fill=${`var(--${tone})`} opacity="0.14" />
    <polyline points=${line} fill="none" stroke=${`var(--${tone})`} stroke-width="1.5" vector-effect="non-scaling-stroke" />
  </svg>`;
}
