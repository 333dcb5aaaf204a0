// An object as lines, each with the policy that changed it. Nothing here knows of the page (tests run it alone).

const MOST_LINES = 3_000;
const PLAIN = /^[A-Za-z0-9_./-][A-Za-z0-9_./:@ -]*$/;
// Plain texts that YAML would read as something else.
const OTHER = /^(true|false|null|~|yes|no|on|off|[-+.]?[0-9][0-9_.e+-]*)$|: | #|:$| $/i;

/** A scalar, or an empty object or list, as YAML writes it. */
export function scalar(value) {
  if (typeof value === "string") return PLAIN.test(value) && !OTHER.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value);
}

const token = (name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/**
 * The lines of a value: {depth, text, path, policy, first}. `policy` changed the line (the closest of `changes` at or
 * above its JSON Pointer), `first` is the first line of a change. `more`: there are further lines.
 */
export function lines(value, changes) {
  const changed = new Map(changes.filter((each) => each.op !== "remove").map((each) => [each.path, each.policy]));
  const found = [];

  function add(depth, text, path, policy) {
    if (found.length <= MOST_LINES) found.push({ depth, text, path, policy, first: changed.has(path) });
  }

  function walk(each, depth, label, path, inherited) {
    if (found.length > MOST_LINES) return;
    const policy = changed.get(path) ?? inherited;
    const members = each !== null && typeof each === "object" ? Object.entries(each) : [];
    if (!members.length) {
      add(depth, `${label}${scalar(each)}`, path, policy);
      return;
    }
    if (label || changed.has(path)) add(depth, label.trimEnd() || "(the whole object)", path, policy);
    const list = Array.isArray(each);
    for (const [name, member] of members) {
      walk(member, depth + (label ? 1 : 0), list ? "- " : `${scalar(name)}: `, `${path}/${token(name)}`, policy);
    }
  }

  walk(value, 0, "", "", null);
  return { lines: found.slice(0, MOST_LINES), more: found.length > MOST_LINES };
}

/** One side of a change as a text: its value, or what is shown instead of a hidden or large one. */
export function valueOf(change, side) {
  if (`${side}Digest` in change) return `(hidden, digest ${change[`${side}Digest`]})`;
  if (`${side}Bytes` in change) return `(${change[`${side}Bytes`].toLocaleString("en")} bytes)`;
  return side in change ? JSON.stringify(change[side]) : "";
}
