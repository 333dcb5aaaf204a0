// Numbers: what they mean, and how they are written. Nothing here knows of the page (tests run it alone).

/** The quantile of a histogram in seconds, interpolated as Prometheus' histogram_quantile does; null without values. */
export function quantile(q, bounds, counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return null;
  const rank = q * total;
  let below = 0;
  for (let index = 0; index < bounds.length; index += 1) {
    const count = counts[index];
    if (count && below + count >= rank) {
      const lower = index ? bounds[index - 1] : 0;
      return lower + (bounds[index] - lower) * ((rank - below) / count);
    }
    below += count;
  }
  return bounds[bounds.length - 1];
}

/** What was counted between two records of numbers, member by member; from 0 if the first is missing or larger. */
export function difference(after, before) {
  if (typeof after === "number") return typeof before === "number" && before <= after ? after - before : after;
  if (Array.isArray(after)) return after.map((each, index) => difference(each, before?.[index]));
  if (after && typeof after === "object") {
    return Object.fromEntries(Object.entries(after).map(([name, each]) => [name, difference(each, before?.[name])]));
  }
  return after;
}

/** Two records of numbers added up, member by member. */
export function sum(one, other) {
  if (typeof one === "number") return one + other;
  if (Array.isArray(one)) return one.map((each, index) => sum(each, other[index]));
  return Object.fromEntries(Object.entries(one).map(([name, each]) => [name, sum(each, other[name])]));
}

/** Seconds as a short text: 850 µs, 12.3 ms, 1.25 s. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${significant(seconds * 1000)} ms`;
  return `${significant(seconds)} s`;
}

/** A number with three significant digits, and without trailing zeros. */
export function significant(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/** A share as a text: 98 %; a dash without a total. */
export function share(part, total) {
  return total ? `${Math.round((100 * part) / total)} %` : "–";
}

/** Whole days from now to a Unix time; negative if it has passed. */
export function daysUntil(unix, now = Date.now() / 1000) {
  return Math.floor((unix - now) / 86400);
}

/** The time of day of a Unix time in UTC, with milliseconds. */
export function clock(unix) {
  return new Date(unix * 1000).toISOString().slice(11, 23);
}

/** A time of RFC 3339 in UTC, as `admission-gateway explain` writes it. */
export function utc(time) {
  return time.replace("T", " ").replace("Z", " UTC");
}

/** "1 policy", "2 policies". */
export function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
