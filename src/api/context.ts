/** What the composition root gives to the API, and what a request carries from one step to the next. */
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Config } from "../config.ts";
import type { Database } from "../store/db.ts";
import type { Principal } from "./auth.ts";

export interface ApiDeps {
  readonly db: Database;
  readonly config: Config;
  now(): number;
  sleep(ms: number): Promise<void>;
  newUid(): string;
  newRequestId(): string;
  /** The id of the Durable Object that has this name. Pure: it asks nobody. */
  doIdOf(sandboxId: string): string;
}

export interface ApiEnv {
  Variables: {
    requestId: string;
    principal: Principal;
  };
}

export type Api = OpenAPIHono<ApiEnv>;
