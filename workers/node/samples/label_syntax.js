/**
 * What Kubernetes accepts as a label's key and value (k8s.io/apimachinery/pkg/util/validation).
 *
 * A key is an optional prefix and a name: "name part must consist of alphanumeric characters, '-', '_' or '.', and must
 * start and end with an alphanumeric character" in at most 63 characters; the prefix is a DNS-1123 subdomain of at most
 * 253. A value is empty or a name.
 */

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const SUBDOMAIN_CHARACTERS = 253;

/**
 * Whether it can be a label's key, such as `team` or `app.kubernetes.io/name`.
 *
 * @param {string} key
 * @returns {boolean}
 */
export function isKey(key) {
  const slash = key.lastIndexOf('/');
  if (slash >= 0 && (slash > SUBDOMAIN_CHARACTERS || !SUBDOMAIN.test(key.slice(0, slash)))) return false;
  return NAME.test(key.slice(slash + 1));
}

/**
 * Whether it can be a label's value.
 *
 * @param {string} value
 * @returns {boolean}
 */
export function isValue(value) {
  return value === '' || NAME.test(value);
}
