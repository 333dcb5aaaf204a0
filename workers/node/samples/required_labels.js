/**
 * `required-labels`: denies objects without the labels that the operator requires, or whose values do not match.
 *
 * A denial names all missing and mismatching labels. The policy does not judge DELETE and CONNECT, which have no
 * object, and subresources: a Scale has no labels of its own, and a status update cannot change labels.
 */

import { deny, entries, jsonOf, pointer, SettingsError } from 'admission-worker';
import { isKey } from './label_syntax.js';
import { isObject, member } from './members.js';
import { isPattern, matches } from './patterns.js';
import { worker } from './sample_worker.js';

/**
 * Settings of required-labels.
 *
 * @typedef {object} RequiredLabels
 * @property {Record<string, string>} labels for each required key a regular expression (RE2's) that the whole value must
 *   match, or `''` for any value
 */

const SETTINGS = {
  type: 'object',
  properties: { labels: { type: 'object', additionalProperties: { type: 'string' } } },
  required: ['labels'],
  additionalProperties: false,
};

/**
 * Report invalid label keys and regular expressions.
 *
 * @param {RequiredLabels} settings
 */
function* validate(settings) {
  for (const [key, pattern] of entries(settings.labels)) {
    const place = pointer('labels', key);
    if (!isKey(key)) yield new SettingsError(place, `${JSON.stringify(key)} cannot be a label's key`);
    if (!isPattern(pattern)) {
      yield new SettingsError(place, `${JSON.stringify(pattern)} is no regular expression (RE2 syntax)`);
    }
  }
}

worker.validating(
  'required-labels',
  {
    description: 'Denies objects that lack a required label, or whose label does not match.',
    settings: SETTINGS,
    validate,
    inputs: ['/object/metadata/labels'],
  },
  requiredLabels,
);

/**
 * @param {import('admission-worker').Request} request
 * @param {RequiredLabels} settings
 */
function requiredLabels({ object, operation, subResource }, settings) {
  if (object === undefined || !['CREATE', 'UPDATE'].includes(operation ?? '') || subResource) return undefined;
  const found = member(member(object, 'metadata'), 'labels');
  const labels = isObject(found) ? found : {};
  const causes = entries(settings.labels).flatMap(([key, pattern]) => wrong(key, pattern, labels));
  return causes.length === 0 ? undefined : deny(causes.map(cause => cause.message).join('; '), { causes });
}

/**
 * The cause of a denial for a label, if any.
 *
 * @param {string} key
 * @param {string} pattern
 * @param {Record<string, unknown>} labels
 */
function wrong(key, pattern, labels) {
  const field = `metadata.labels[${key}]`;
  const label = `label ${JSON.stringify(key)}`;
  if (!Object.hasOwn(labels, key)) {
    const wanted = pattern ? ` with a value that matches ${JSON.stringify(pattern)}` : '';
    return [{ field, message: `${label} is required${wanted}`, reason: 'FieldValueRequired' }];
  }
  const value = labels[key];
  if (typeof value === 'string' && (!pattern || matches(pattern, value))) return [];
  const message = `${label} is ${jsonOf(labels, key)} and must match ${JSON.stringify(pattern)}`;
  return [{ field, message, reason: 'FieldValueInvalid' }];
}
