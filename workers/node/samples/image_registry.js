/**
 * `image-registry`: replaces the registry of images, for example by a mirror.
 *
 * An image is written `[REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]`. Short names are Docker's: the first component is a
 * registry only if it has a `.` or a `:` or is `localhost` (github.com/distribution/reference, normalize.go); otherwise
 * it is `docker.io`, where a name of one component lies in `library/`. So `nginx` is `docker.io/library/nginx`, and
 * `user/app` is `docker.io/user/app`. Tag and digest stay as they are.
 *
 * An image that is in the new place already stays, so that a second run changes nothing. So does an image that an
 * UPDATE does not change: rewriting it would restart a running Pod when only a label changes.
 */

import { patch, SettingsError } from 'admission-worker';
import { member } from './members.js';
import { ALL, claims, containers, places } from './pod_specs.js';
import { worker } from './sample_worker.js';

const DOCKER_HUB = 'docker.io';

/** The reference grammar's other name for the same registry. */
const OLD_DOCKER_HUB = 'index.docker.io';

const PLACE = /^[A-Za-z0-9.-]+(:[0-9]+)?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*$/;

/**
 * Settings of image-registry.
 *
 * @typedef {object} ImageRegistry
 * @property {string} from a registry such as `docker.io`, or a path in one such as `registry.example.com/team`
 * @property {string} to the registry, with or without a path, that takes its place
 */

const SETTINGS = {
  type: 'object',
  properties: { from: { type: 'string' }, to: { type: 'string' } },
  required: ['from', 'to'],
  additionalProperties: false,
};

/**
 * Report invalid registries, and settings that would never rewrite an image.
 *
 * @param {ImageRegistry} settings
 */
function* validate({ from, to }) {
  let isValid = true;
  for (const [name, place] of Object.entries({ from, to })) {
    if (PLACE.test(place) && isRegistry(firstOf(place))) continue;
    isValid = false;
    const wanted = 'a registry with or without a path, such as docker.io or mirror.example.com/hub';
    yield new SettingsError(`/${name}`, `must be ${wanted}, is ${JSON.stringify(place)}`);
  }
  if (firstOf(from) === OLD_DOCKER_HUB) {
    yield new SettingsError('/from', `${OLD_DOCKER_HUB} is another name of ${DOCKER_HUB}: write ${DOCKER_HUB}`);
  }
  if (isValid && restOf(from, to) !== undefined) {
    const lies = `${JSON.stringify(from)} lies in ${JSON.stringify(to)}`;
    yield new SettingsError('/from', `${lies}, where images stay: nothing would ever be rewritten`);
  }
}

worker.mutating(
  'image-registry',
  {
    description: 'Rewrites images of one registry to another, in Pods and in the templates of what creates Pods.',
    settings: SETTINGS,
    validate,
    inputs: claims(ALL, ['name', 'image']),
    writes: places(ALL, 'image'),
  },
  imageRegistry,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {ImageRegistry} settings
 */
function imageRegistry(request, settings) {
  if (!['CREATE', 'UPDATE'].includes(request.operation ?? '')) return undefined;
  return patch(
    containers(request, ALL).flatMap(container => {
      const { image, before } = container;
      if (!image || (before !== undefined && member(before, 'image') === image)) return [];
      const value = rewritten(image, settings);
      return value === undefined ? [] : [{ op: 'replace', path: container.pointer('image'), value }];
    }),
  );
}

/**
 * The image in its new place; undefined: it stays where it is.
 *
 * @param {string} image as it is written in a container
 * @param {ImageRegistry} settings
 * @returns {string | undefined}
 */
export function rewritten(image, { from, to }) {
  const whole = normalized(image);
  // Also as it is written: an image moved to a target such as docker.io/a is normalized to docker.io/library/a later.
  if (restOf(whole, to) !== undefined || restOf(image, to) !== undefined) return undefined;
  const rest = restOf(whole, from);
  return rest === undefined ? undefined : `${to}${rest}`;
}

/**
 * The image with its registry: `nginx:1` is `docker.io/library/nginx:1`.
 *
 * @param {string} image
 * @returns {string}
 */
export function normalized(image) {
  const slash = image.indexOf('/');
  let first = firstOf(image);
  let path = image.slice(slash + 1);
  if (slash < 0 || !isRegistry(first)) {
    first = DOCKER_HUB;
    path = image;
  } else if (first === OLD_DOCKER_HUB) {
    first = DOCKER_HUB;
  }
  return first === DOCKER_HUB && !path.includes('/') ? `${first}/library/${path}` : `${first}/${path}`;
}

/**
 * The part before the first slash.
 *
 * @param {string} place
 */
function firstOf(place) {
  return place.split('/', 1)[0];
}

/** @param {string} component */
function isRegistry(component) {
  return /[.:]/.test(component) || component === 'localhost' || component !== component.toLowerCase();
}

/**
 * The part of a normalized image after a place: a path, or a repository's tag or digest; undefined: it lies elsewhere.
 *
 * @param {string} whole
 * @param {string} place
 * @returns {string | undefined}
 */
function restOf(whole, place) {
  if (!whole.startsWith(place)) return undefined;
  const rest = whole.slice(place.length);
  const ends = place.includes('/') ? '/:@' : '/'; // after a registry alone, a colon begins its port
  return rest === '' || ends.includes(rest[0]) ? rest : undefined;
}
