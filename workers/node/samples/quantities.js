/**
 * Kubernetes' quantities (k8s.io/apimachinery/pkg/api/resource): `100m`, `1Gi`, `1e3`, `0.5`.
 *
 *     <quantity>        ::= <signedNumber><suffix>
 *     <suffix>          ::= <binarySI> | <decimalExponent> | <decimalSI>
 *     <binarySI>        ::= Ki | Mi | Gi | Ti | Pi | Ei
 *     <decimalSI>       ::= n | u | m | "" | k | M | G | T | P | E
 *     <decimalExponent> ::= "e" <signedNumber> | "E" <signedNumber>
 *
 * "No matter which of the three exponent forms is used, no quantity may represent a number greater than 2^63-1 in
 * magnitude, nor may it have more than 3 decimal places. Numbers larger or more precise will be capped or rounded up.
 * (E.g.: 0.1m will rounded up to 1m.)" The code behind it rounds up at a billionth, and so does this.
 */

const QUANTITY =
  /^(?<sign>[+-]?)(?:(?<whole>[0-9]+)(?:\.(?<part>[0-9]*))?|\.(?<only>[0-9]+))(?:[eE](?<exponent>[+-]?[0-9]{1,9})|(?<suffix>[KMGTPE]i|[numkMGTPE])?)$/;

/** The power of ten of each decimal suffix, and of two of each binary one. */
const TENS = new Map([...'numkMGTPE'].map((name, index) => [name, [-9, -6, -3, 3, 6, 9, 12, 15, 18][index]]));
const TWOS = new Map([...'KMGTPE'].map((name, index) => [`${name}i`, 10 * (index + 1)]));

/** Billionths: the smallest difference between two quantities. */
const NANO = 9;
const LARGEST = (2n ** 63n - 1n) * 10n ** BigInt(NANO);

/** The most characters of a quantity: the largest has 19 digits before and 9 after the point. */
const LONGEST = 128;

/**
 * Larger and smaller exponents are replaced by these: times 10^256 every number exceeds LARGEST, and times 10^-256 a
 * number of at most 128 digits is below a billionth. So a `1e999999999` costs nothing.
 */
const EXPONENTS = 256;

/** A text is not a quantity. The message is for its author. */
export class QuantityError extends Error {
  /** @override */
  name = 'QuantityError';
}

/**
 * The exact value of a quantity in billionths, capped and rounded up as Kubernetes does.
 *
 * @param {string} written a text, or the text of a JSON number
 * @returns {bigint}
 * @throws {QuantityError}
 */
export function quantity(written) {
  const characters = Array.from(written);
  const found = characters.length <= LONGEST ? QUANTITY.exec(written)?.groups : undefined;
  if (found === undefined) {
    const shown = JSON.stringify(characters.slice(0, LONGEST).join(''));
    throw new QuantityError(`${shown} is no quantity such as 100m, 0.5 or 1Gi`);
  }
  const part = found.part ?? found.only ?? '';
  const exponent = Math.max(-EXPONENTS, Math.min(EXPONENTS, Number(found.exponent ?? 0)));
  const tens = exponent + (TENS.get(found.suffix) ?? 0) - part.length + NANO;
  const digits = BigInt(`${found.whole ?? ''}${part}`) * 2n ** BigInt(TWOS.get(found.suffix) ?? 0);
  const exact = tens >= 0 ? digits * 10n ** BigInt(tens) : roundedUp(digits, 10n ** BigInt(-tens));
  const magnitude = exact < LARGEST ? exact : LARGEST;
  return found.sign === '-' ? -magnitude : magnitude;
}

/**
 * @param {bigint} value not negative
 * @param {bigint} divisor
 */
function roundedUp(value, divisor) {
  return (value + divisor - 1n) / divisor;
}
