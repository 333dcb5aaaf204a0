/**
 * `no-privileged`: denies privileged containers, init and ephemeral containers included.
 *
 * It judges Pods (with their `ephemeralcontainers`) and the templates of workloads, so that the author of a Deployment
 * gets the denial, and not its ReplicaSet. An UPDATE may keep a container that was privileged before, with the same
 * image: otherwise old Pods could not be labelled or deleted. Pods that such a template creates are judged as Pods.
 */

import { deny } from 'admission-worker';
import { matchesGlob } from './globs.js';
import { member } from './members.js';
import { ALL, claims, containers } from './pod_specs.js';
import { worker } from './sample_worker.js';

/**
 * Settings of no-privileged.
 *
 * @typedef {object} NoPrivileged
 * @property {string[]} exemptImages globs of images that may run privileged, compared with the image as it is written;
 *   `*` matches slashes too, as in `registry.example.com/agents/*`
 */

const SETTINGS = {
  type: 'object',
  properties: { exemptImages: { type: 'array', items: { type: 'string' }, default: [] } },
  additionalProperties: false,
};

worker.validating(
  'no-privileged',
  {
    description: 'Denies privileged containers in Pods and in the templates of what creates Pods.',
    settings: SETTINGS,
    inputs: claims(ALL, ['name', 'image', 'securityContext/privileged']),
  },
  noPrivileged,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {NoPrivileged} settings
 */
function noPrivileged(request, { exemptImages }) {
  if (!['CREATE', 'UPDATE'].includes(request.operation ?? '')) return undefined;
  const causes = containers(request, ALL)
    .filter(container => isPrivileged(container.value) && !wasSo(container))
    .filter(({ image }) => !exemptImages.some(glob => matchesGlob(image, glob)))
    .map(causeOf);
  if (causes.length === 0) return undefined;
  return deny(`privileged containers are not allowed: ${causes.map(cause => cause.message).join('; ')}`, { causes });
}

/** @param {Record<string, unknown>} container */
function isPrivileged(container) {
  return member(member(container, 'securityContext'), 'privileged') === true;
}

/** @param {import('./pod_specs.js').Container} container */
function wasSo({ value, before }) {
  return before !== undefined && isPrivileged(before) && member(before, 'image') === member(value, 'image');
}

/** @param {import('./pod_specs.js').Container} container */
function causeOf({ field, name, image }) {
  return {
    field: `${field}.securityContext.privileged`,
    message: `${field} (${JSON.stringify(name)}, image ${JSON.stringify(image)})`,
    reason: 'FieldValueForbidden',
  };
}
