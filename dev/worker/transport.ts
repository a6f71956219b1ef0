/** The SDK's transports, by the name in a query string; rpc where none is given, as in the report. */
export type Transport = "http" | "rpc";

export function transportOf(name: string | undefined): Transport {
  return name === "http" ? "http" : "rpc";
}
