export const TRANSPORTS = ["http", "rpc", "websocket"] as const;

/** The SDK's transports, by the name in a query string; rpc where none is given, as in the report. */
export type Transport = (typeof TRANSPORTS)[number];

export function transportOf(name: string | undefined): Transport {
  return TRANSPORTS.find((transport) => transport === name) ?? "rpc";
}
