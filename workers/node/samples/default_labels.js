/**
 * `default-labels`: adds labels that an object lacks, and never overwrites one.
 *
 * It ignores subresources, whose objects have no labels or cannot change them.
 */

import { entries, patch, pointer, SettingsError } from 'admission-worker';
import { isKey, isValue } from './label_syntax.js';
import { isObject, member } from './members.js';
import { worker } from './sample_worker.js';

/**
 * Settings of default-labels.
 *
 * @typedef {object} DefaultLabels
 * @property {Record<string, string>} labels the value of each label that is added where it is missing
 */

const SETTINGS = {
  type: 'object',
  properties: { labels: { type: 'object', additionalProperties: { type: 'string' } } },
  required: ['labels'],
  additionalProperties: false,
};

/**
 * Report labels that Kubernetes does not accept.
 *
 * @param {DefaultLabels} settings
 */
function* validate(settings) {
  for (const [key, value] of entries(settings.labels)) {
    const place = pointer('labels', key);
    if (!isKey(key)) yield new SettingsError(place, `${JSON.stringify(key)} cannot be a label's key`);
    if (!isValue(value)) yield new SettingsError(place, `${JSON.stringify(value)} cannot be a label's value`);
  }
}

worker.mutating(
  'default-labels',
  {
    description: 'Adds labels that an object lacks.',
    settings: SETTINGS,
    validate,
    inputs: ['/object/metadata/labels'],
    writes: ['/metadata/labels'],
  },
  defaultLabels,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {DefaultLabels} settings
 */
function defaultLabels({ object, operation, subResource }, { labels }) {
  if (object === undefined || !['CREATE', 'UPDATE'].includes(operation ?? '') || subResource) return undefined;
  const wanted = entries(labels);
  if (wanted.length === 0) return undefined;
  const metadata = member(object, 'metadata');
  if (!isObject(metadata)) return patch([{ op: 'add', path: '/metadata', value: { labels } }]);
  const found = member(metadata, 'labels');
  if (!isObject(found)) return patch([{ op: 'add', path: '/metadata/labels', value: labels }]);
  return patch(
    wanted
      .filter(([key]) => !Object.hasOwn(found, key))
      .map(([key, value]) => ({ op: 'add', path: pointer('metadata', 'labels', key), value })),
  );
}
