/**
 * Where Pods are described: in a Pod itself, and in the templates of what creates Pods.
 *
 * A container that an UPDATE leaves as it was is not the request's doing; `Container.before` tells.
 */

import { pointer } from 'admission-worker';
import { isObject, member, text } from './members.js';

/** @typedef {import('admission-worker').Request} Request */

const TEMPLATE = ['spec', 'template', 'spec'];

/**
 * The path to the PodSpec in each kind of Kubernetes' own that has one, by group and kind. In the subresources of a Pod
 * that change containers (`ephemeralcontainers`, `resize`) the object is the Pod.
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

/** The lists of what runs from the start, and all of them. */
export const RUNNING = ['initContainers', 'containers'];
export const ALL = ['initContainers', 'containers', 'ephemeralContainers'];

/** One container in an object. */
export class Container {
  #path;

  /**
   * @param {readonly (string | number)[]} path its place in the object: `['spec', 'containers', 0]`
   * @param {Record<string, any>} value the container as it would be stored
   * @param {Record<string, any> | undefined} before the container of that name in the same list as it is stored
   */
  constructor(path, value, before) {
    this.#path = path;
    this.value = value;
    this.before = before;
  }

  /** Its name, as far as there is one. */
  get name() {
    return text(member(this.value, 'name'));
  }

  /** Its image, as far as there is one. */
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
 * What a policy claims that reads these members of containers, before and after: JSON Pointers over the request.
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
 * What a policy writes that changes this member of containers: JSON Pointers over the object.
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
