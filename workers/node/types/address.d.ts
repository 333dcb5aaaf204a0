/** @typedef {{ path: string } | { host: string, port: number }} Address a Unix socket's path, or host and port (0: any) */
/**
 * Parse an address.
 *
 * @param {string} text `unix:PATH`, `unix:///ABSOLUTE`, `HOST:PORT` or `[IPv6]:PORT`; a leading `dns:///`, which gRPC
 *   clients need, is removed, so that a client's target can be used as it is
 * @returns {Address}
 * @throws {AddressError} it is none of these
 */
export function parseAddress(text: string): Address;
/**
 * The address as gRPC clients write it: `unix:PATH` or `HOST:PORT`.
 *
 * @param {Address} address
 * @returns {string}
 */
export function addressText(address: Address): string;
/**
 * a Unix socket's path, or host and port (0: any)
 */
export type Address = {
    path: string;
} | {
    host: string;
    port: number;
};
