// Reads the gateway's data. The token is kept for this tab only, and sent as a header: there is no cookie that a browser
// would send to other ports of this host.

const KEY = "admission-gateway-token";

/** The gateway wants a token, or another one. */
export class TokenNeeded extends Error {
  constructor() {
    super("the gateway does not accept the token any more; load the page again");
  }
}

/** Keep a token. */
export function useToken(token) {
  sessionStorage.setItem(KEY, token);
}

/** Whether a token is kept: one that was refused, if the gateway asks for it. */
export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** The response at a path, relative to the page. Throws TokenNeeded, or an Error with the gateway's words. */
export async function request(path, signal) {
  const token = sessionStorage.getItem(KEY);
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit" });
  if (response.status === 401) throw new TokenNeeded();
  if (!response.ok) throw new Error((await response.text()).trim() || `HTTP ${response.status}`);
  return response;
}

/** The JSON value at a path. */
export async function read(path) {
  return (await request(path)).json();
}
