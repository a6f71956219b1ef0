/**
 * The part of Cloudflare's API that lists containers, as documented, on a port of this machine: applications by name, instances in pages
 * by token. A test may put an answer of its own before the documented one.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export type Reply = (response: ServerResponse, request: IncomingMessage) => void;

export interface PlatformRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage["headers"];
}

export class Platform {
  applications: unknown[] = [];
  /** As the API describes them, by the application's id. */
  readonly instances = new Map<string, readonly unknown[]>();
  /** The most that a page holds, whatever is asked for. */
  pageSize = 1000;
  /** For the next requests of each kind; null is the documented answer. */
  readonly replies: { applications: (Reply | null)[]; instances: (Reply | null)[] } = { applications: [], instances: [] };
  readonly requests: PlatformRequest[] = [];
  baseUrl = "";

  /** The paths below the account, oldest first. */
  get paths(): readonly string[] {
    return this.requests.map(({ path }) => path.replace("/client/v4/accounts/acc/containers/", ""));
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => this.#answer(request, response));
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    });
    this.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`;
    return this;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://platform");
    this.requests.push({ path: url.pathname, query: Object.fromEntries(url.searchParams), headers: request.headers });
    const match = /^\/client\/v4\/accounts\/acc\/containers\/applications(?:\/([^/]+)\/instances-v2)?$/.exec(url.pathname);
    const kind = match?.[1] === undefined ? "applications" : "instances";
    const reply = this.replies[kind].shift() ?? this.#documented(match, url.searchParams);
    reply(response, request);
  }

  #documented(match: RegExpExecArray | null, query: URLSearchParams): Reply {
    if (match === null) return refusal(404);
    const [, applicationId] = match;
    const items = applicationId === undefined ? this.#named(query.get("name") ?? "") : this.instances.get(applicationId);
    if (items === undefined) return refusal(404);
    const size = Math.min(Number(query.get("per_page") ?? 100), this.pageSize);
    const start = Number(query.get("page_token")?.replace("after-", "") ?? 0);
    const end = start + size;
    return page(items.slice(start, end), end < items.length ? `after-${end}` : undefined);
  }

  /** The filter finds parts of names. */
  #named(name: string): readonly unknown[] {
    return this.applications.filter((application) => (application as { name: string }).name.includes(name));
  }
}

export function page(result: readonly unknown[], nextPageToken?: string): Reply {
  const resultInfo = { per_page: result.length, ...(nextPageToken === undefined ? {} : { next_page_token: nextPageToken }) };
  return json({ success: true, errors: [], messages: [], result, result_info: resultInfo });
}

export function json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Reply {
  return text(JSON.stringify(body), status, { "Content-Type": "application/json", ...headers });
}

export function text(body: string, status = 200, headers: Readonly<Record<string, string>> = {}): Reply {
  return (response) => response.writeHead(status, headers).end(body);
}

export function refusal(status: number, code = 1000 + status, headers: Readonly<Record<string, string>> = {}): Reply {
  return json({ success: false, errors: [{ code, message: `says ${SECRET}` }], messages: [], result: null }, status, headers);
}

/** Stands for what the platform writes into its texts. */
export const SECRET = "shh-this-is-private";

export const silent: Reply = () => {};

/** The headers and the beginning of a body, and nothing after it. */
export const halfSilent: Reply = (response) => {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.write('{"success":true,');
};

export const reset: Reply = (response) => {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.write('{"success":true,"result":[', () => response.socket?.resetAndDestroy());
};

/** Ends before the length it promised. */
export const cut: Reply = (response) => {
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "1000" });
  response.write('{"success":true,"result":[', () => response.socket?.end());
};
