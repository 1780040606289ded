// Numbers, sizes and times, as people read them.

const group = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 1,234,567 */
export const whole = (value) => group.format(value);

/** 1.23 M */
export function short(value) {
  const size = Math.abs(value);
  if (size < 1000) return Number.isInteger(value) ? String(value) : value.toFixed(1);
  const units = ["k", "M", "G", "T"];
  const power = Math.min(Math.floor(Math.log10(size) / 3), units.length);
  const scaled = value / 1000 ** power;
  return `${Number(scaled.toPrecision(3))}${units[power - 1]}`;
}

/** 1.5 GiB */
export function bytes(value) {
  if (value < 1024) return `${Math.round(value)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(value) / 10), units.length);
  const scaled = value / 1024 ** power;
  return `${scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${units[power - 1]}`;
}

/** Nanoseconds: 12.3 µs */
export function nanoseconds(value) {
  if (!value) return "–";
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const [size, unit] = units.find(([size]) => value >= size * 0.9995) ?? [1, "ns"];
  const scaled = value / size;
  return `${scaled >= 100 ? Math.round(scaled) : scaled.toPrecision(2)} ${unit}`;
}

/** Seconds: 2 d 3 h */
export function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.max(0, Math.floor(seconds));
  const parts = [];
  for (const [unit, size] of units) {
    if (left >= size || (unit === "s" && !parts.length)) parts.push(`${Math.floor(left / size)} ${unit}`);
    left %= size;
  }
  return parts.slice(0, 2).join(" ");
}

/** A time of day. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

/** Date and time. */
export const moment = (ms) => `${new Date(ms).toLocaleDateString("en-CA")} ${clock(ms)}`;

/** 12.3 % of a share between 0 and 1. */
export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
