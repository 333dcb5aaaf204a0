/**
 * PodSpecs, in Pods and in the templates of workloads.
 *
 * `Container.before` shows whether an UPDATE changes a container.
 */

import { pointer } from 'admission-worker';
import { isObject, member, text } from './members.js';

/** @typedef {import('admission-worker').Request} Request */

const TEMPLATE = ['spec', 'template', 'spec'];

/**
 * The path of the PodSpec in each built-in kind that has one, by group and kind. In the subresources of a Pod that
 * change containers (`ephemeralcontainers`, `resize`) the object is the Pod.
 */
const POD_SPECS = new Map([
  ['/Pod', ['spec']],
  ['/PodTemplate', ['template', 'spec']],
  ['/ReplicationController', TEMPLATE],
  ['apps/DaemonSet', TEMPLATE],
  ['apps/Deployment', TEMPLATE],
  ['apps/ReplicaSet', TEMPLATE],
  ['apps/StatefulSet', TEMPLATE],
  ['batch/Job', TEMPLATE],
  ['batch/CronJob', ['spec', 'jobTemplate', 'spec', 'template', 'spec']],
]);

/** The different paths among them, in order. */
export const PATHS = [...new Map([...POD_SPECS.values()].map(path => [pointer(...path), path]))]
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .map(([, path]) => path);

/** The lists of containers without ephemeral ones, and all lists. */
export const RUNNING = ['initContainers', 'containers'];
export const ALL = ['initContainers', 'containers', 'ephemeralContainers'];

/** One container in an object. */
export class Container {
  #path;

  /**
   * @param {readonly (string | number)[]} path its place in the object: `['spec', 'containers', 0]`
   * @param {Record<string, any>} value the container as it would be stored
   * @param {Record<string, any> | undefined} before the stored container of that name in the same list
   */
  constructor(path, value, before) {
    this.#path = path;
    this.value = value;
    this.before = before;
  }

  /** Its name; `''` without one. */
  get name() {
    return text(member(this.value, 'name'));
  }

  /** Its image; `''` without one. */
  get image() {
    return text(member(this.value, 'image'));
  }

  /** Its place in Kubernetes' notation: `spec.containers[0]`. */
  get field() {
    return `${this.#path.slice(0, -1).join('.')}[${this.#path.at(-1)}]`;
  }

  /**
   * Its place, or one below it, as a JSON Pointer over the object.
   *
   * @param {...string} below
   */
  pointer(...below) {
    return pointer(...this.#path, ...below);
  }
}

/**
 * Where the PodSpec is in the request's object; undefined: its kind has none.
 *
 * @param {Request} request
 * @returns {readonly string[] | undefined}
 */
export function pathOf({ kind }) {
  return kind && POD_SPECS.get(`${kind.group}/${kind.kind}`);
}

/**
 * The object at a path of an object, such as its PodSpec; empty where there is none.
 *
 * @param {unknown} whole
 * @param {readonly string[]} path
 * @returns {Record<string, any>}
 */
export function specOf(whole, path) {
  const found = path.reduce(member, whole);
  return isObject(found) ? found : {};
}

/**
 * The containers of the request's object.
 *
 * @param {Request} request about an object of any kind
 * @param {readonly string[]} lists in which lists of the PodSpec, such as ALL
 * @returns {Container[]}
 */
export function containers(request, lists) {
  const path = pathOf(request);
  if (path === undefined) return [];
  const now = specOf(request.object, path);
  const old = specOf(request.oldObject, path);
  return lists.flatMap(list => {
    const before = new Map(listed(old, list).map(([, value]) => [text(member(value, 'name')), value]));
    return listed(now, list).map(
      ([index, value]) => new Container([...path, list, index], value, before.get(text(member(value, 'name')))),
    );
  });
}

/**
 * The inputs of a policy that reads these members of containers, in the object and the old object.
 *
 * @param {readonly string[]} lists
 * @param {readonly string[]} members such as `securityContext/privileged`
 * @returns {string[]}
 */
export function claims(lists, members) {
  return ['object', 'oldObject'].flatMap(whole =>
    PATHS.flatMap(path =>
      lists.flatMap(list => members.map(below => pointer(whole, ...path, list, '*', ...below.split('/')))),
    ),
  );
}

/**
 * The writes of a policy that changes this member of containers.
 *
 * @param {readonly string[]} lists
 * @param {string} below
 * @returns {string[]}
 */
export function places(lists, below) {
  return PATHS.flatMap(path => lists.map(list => pointer(...path, list, '*', below)));
}

/**
 * @param {Record<string, any>} spec
 * @param {string} list
 * @returns {[number, Record<string, any>][]}
 */
function listed(spec, list) {
  const found = member(spec, list);
  if (!Array.isArray(found)) return [];
  return /** @type {[number, any][]} */ ([...found.entries()]).filter(([, value]) => isObject(value));
}
