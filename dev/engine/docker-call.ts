/** One call of the Docker API and its answer, as the routes see them. */
import type { ServerResponse } from "node:http";
import type { Ledger } from "./ledger.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Registry } from "./registry.ts";

export interface DockerApiOptions {
  readonly ledger: Ledger;
  readonly lifecycle: Lifecycle;
  readonly registry: Registry;
}

/** One call of workerd, taken apart. */
export interface DockerCall {
  readonly method: string;
  /** Path segments, decoded. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly response: ServerResponse;
}

export interface Reply {
  readonly status: number;
  readonly json?: unknown;
}

/** Dropped: the connection was cut, or another part of the engine writes the answer itself. */
export type Outcome = Reply | "Dropped" | "Unimplemented";
