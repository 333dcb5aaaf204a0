/**
 * Listen.
 *
 * @param {Address} address
 * @param {tls.TlsOptions | undefined} secure undefined: without TLS
 * @param {(socket: import('node:stream').Duplex) => void} connected takes each connection
 * @returns {Promise<{ server: net.Server, found: Address }>} `found`: port 0 is replaced by the chosen port
 * @throws {AddressError}
 */
export function listen(address: Address, secure: tls.TlsOptions | undefined, connected: (socket: import("node:stream").Duplex) => void): Promise<{
    server: net.Server;
    found: Address;
}>;
export type Address = import("./address.js").Address;
import tls from 'node:tls';
import net from 'node:net';
