/**
 * The text of numbers and the order of members, which JavaScript does not keep.
 *
 * `JSON.parse` makes every number a double: 9007199254740993 becomes ...992, 1e400 becomes Infinity, 1.0 is printed
 * as 1. A policy that changes a label and returns the object must not change such a number. And a JavaScript object
 * lists members that look like indexes first, such as `1`, whatever their order in the text.
 *
 * So after `JSON.parse` the text is scanned once, and what JavaScript loses is stored for the array or object that
 * holds it, for as long as that lives. A number that is still the same in the same place is printed with its text; an
 * assigned number is printed by JavaScript. Most documents have nothing to store: they cost the scan alone.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const NUMBER = /-?[0-9.eE+-]*/y;

/** @typedef {{ value: number, text: string }} Written a number, and its text */
/** @typedef {{ numbers: Map<string | number, Written>, order: string[] | undefined }} Memory of one container */

/** @type {WeakMap<object, Memory>} */
const memories = new WeakMap();

/** @typedef {{ numbers: Map<string | number, string>, below: Map<string | number, Node>, order?: string[] }} Node */

/** An open container of the scan, and what was found in it. */
class Frame {
  isArray;
  wantsKey;
  index = 0;
  keyFrom = 0;
  keyTo = 0;
  /** @type {Node | undefined} */
  node = undefined;
  /** @type {Set<string> | undefined} */
  keys = undefined;

  /** @param {boolean} isArray */
  constructor(isArray) {
    this.isArray = isArray;
    this.wantsKey = !isArray;
  }

  /**
   * The member or element at which the scan is.
   *
   * @param {string} json
   * @returns {string | number}
   */
  place(json) {
    return this.isArray ? this.index : JSON.parse(json.slice(this.keyFrom, this.keyTo));
  }

  /** @returns {Node} */
  found() {
    this.node ??= { numbers: new Map(), below: new Map() };
    return this.node;
  }
}

/**
 * Store number texts and member order for every array and object of a parsed value.
 *
 * @param {unknown} value the result of `JSON.parse(json)`, unchanged
 * @param {string} json valid JSON text
 * @param {{ order?: boolean }} [wanted] whether to store the order of members
 * @returns {boolean} whether anything was stored
 */
export function remember(value, json, { order = false } = {}) {
  const root = scanned(json, order);
  if (root === undefined || typeof value !== 'object' || value === null) return false;
  /** @type {[any, Node][]} */
  const open = [[value, root]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [container, node] = next;
    const numbers = new Map([...node.numbers].map(([place, text]) => [place, { value: container[place], text }]));
    memories.set(container, { numbers, order: node.order });
    for (const [place, below] of node.below) open.push([container[place], below]);
  }
  return true;
}

/**
 * Store a number's text for a container.
 *
 * @param {object} container which holds the number
 * @param {string | number} place the member's name or the element's index
 * @param {Written} written the number and the text that was read
 */
export function rememberNumber(container, place, written) {
  const memory = memories.get(container) ?? { numbers: new Map(), order: undefined };
  memory.numbers.set(place, written);
  memories.set(container, memory);
}

/**
 * What is stored of a container.
 *
 * @param {object} container
 * @returns {Memory | undefined}
 */
export function memoryOf(container) {
  return memories.get(container);
}

/**
 * The text of a number that was read; undefined: the value is not a number, was changed, or JavaScript prints the same.
 *
 * @param {Memory | undefined} memory of the container
 * @param {string | number} place
 * @param {unknown} value the current value
 * @returns {string | undefined}
 */
export function writtenNumber(memory, place, value) {
  const written = memory?.numbers.get(place);
  return written !== undefined && Object.is(written.value, value) ? written.text : undefined;
}

/**
 * The members of an object of the settings, in the order of the text.
 *
 * Documents have JavaScript's order, since nothing in Kubernetes depends on the order of members.
 *
 * @template T
 * @param {Readonly<Record<string, T>>} object such as `settings.labels`
 * @returns {[string, T][]}
 */
export function entries(object) {
  return keysOf(object).map(key => [key, object[key]]);
}

/**
 * The names of an object's members: those that were read in the order of the text, then the others.
 *
 * @param {object} object
 * @returns {string[]}
 */
export function keysOf(object) {
  const keys = Object.keys(object);
  const order = memories.get(object)?.order;
  if (order === undefined) return keys;
  return [...new Set([...order.filter(key => Object.hasOwn(object, key)), ...keys])];
}

/**
 * The numbers of a text that JavaScript prints differently, and the order of members where JavaScript has another;
 * undefined: none.
 *
 * @param {string} json
 * @param {boolean} wantsOrder
 * @returns {Node | undefined}
 */
function scanned(json, wantsOrder) {
  /** @type {Frame[]} */
  const outer = [];
  /** @type {Frame | undefined} */
  let frame;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(json, at);
      if (frame?.wantsKey) keyRead(json, frame, at, end, wantsOrder);
      at = end - 1;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (frame !== undefined) outer.push(frame);
      frame = new Frame(code === OPEN_ARRAY);
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      const closed = /** @type {Frame} */ (frame);
      settleOrder(closed);
      frame = outer.pop();
      if (frame === undefined) return closed.node;
      if (closed.node !== undefined) frame.found().below.set(frame.place(json), closed.node);
    } else if (code === COMMA && frame !== undefined) {
      if (frame.isArray) frame.index += 1;
      else frame.wantsKey = true;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      NUMBER.lastIndex = at;
      const text = /** @type {RegExpExecArray} */ (NUMBER.exec(json))[0];
      if (frame !== undefined && String(Number(text)) !== text) frame.found().numbers.set(frame.place(json), text);
      at += text.length - 1;
    }
  }
  return undefined;
}

/**
 * @param {string} json
 * @param {Frame} frame
 * @param {number} from
 * @param {number} to
 * @param {boolean} wantsOrder
 */
function keyRead(json, frame, from, to, wantsOrder) {
  frame.wantsKey = false;
  frame.keyFrom = from;
  frame.keyTo = to;
  if (frame.node !== undefined) {
    // A duplicate member: the last one wins.
    const key = frame.place(json);
    frame.node.numbers.delete(key);
    frame.node.below.delete(key);
  }
  if (wantsOrder) {
    frame.keys ??= new Set();
    frame.keys.add(String(frame.place(json)));
  }
}

/** @param {Frame} frame */
function settleOrder(frame) {
  const keys = frame.keys;
  if (keys !== undefined && [...keys].some(key => /^[0-9]/.test(key))) frame.found().order = [...keys];
}

/**
 * The index behind a string's closing quote.
 *
 * @param {string} json
 * @param {number} from of its opening quote
 * @returns {number}
 */
function endOfString(json, from) {
  let end = json.indexOf('"', from + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end + 1;
}

/**
 * @param {string} json
 * @param {number} quote
 * @returns {boolean}
 */
function isEscaped(json, quote) {
  let first = quote;
  while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 1;
}
