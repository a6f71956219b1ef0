import { asOperationError, errorBody, OperationError, validationError } from "./errors.ts";
import { type Body, type Call, httpRoutes } from "./http-routes.ts";
import type { Operations } from "./operations.ts";

/** A request of the SDK's HTTP transport, or the same in a message of its websocket transport. */
export interface Request {
  readonly method: string;
  readonly path: string;
  /** Called at most once; undefined where the request has no body. */
  readonly readBody: () => Promise<unknown>;
}

export interface Answer {
  readonly status: number;
  /** Plain text, events as they happen, or what becomes JSON. */
  readonly content: string | ReadableStream<Uint8Array> | object;
}

/** Answers a request. A failure is an answer too. */
export type Dispatch = (request: Request) => Promise<Answer>;

/** Leads each request to its operation. */
export function createDispatch(operations: Operations): Dispatch {
  const find = routeFinder(httpRoutes(operations));
  return async (request) => {
    try {
      return await answer(find, request);
    } catch (error) {
      const body = errorBody(asOperationError(error));
      return { status: body.httpStatus, content: body };
    }
  };
}

type Route = (call: Call) => Promise<object | string>;
type Find = (method: string, path: string) => { readonly route: Route; readonly id: string } | undefined;

async function answer(find: Find, { method, path: pathAndQuery, readBody }: Request): Promise<Answer> {
  const path = pathAndQuery.split("?", 1)[0] ?? "/";
  const found = find(method, path);
  if (found === undefined) {
    const missing = new OperationError("UNKNOWN_ERROR", `There is no ${method} ${path}`);
    return { status: 404, content: errorBody(missing, 404) };
  }
  return { status: 200, content: await found.route({ body: asBody(await readBody()), id: found.id }) };
}

function routeFinder(routes: ReadonlyMap<string, Route>): Find {
  return (method, path) => {
    const exact = routes.get(`${method} ${path}`);
    if (exact !== undefined) return { route: exact, id: "" };
    // Every route with a parameter has it as the third segment.
    const segments = path.split("/");
    const id = segments[3] ?? "";
    const route = routes.get(`${method} ${segments.with(Math.min(3, segments.length - 1), "{id}").join("/")}`);
    return route === undefined || id === "" ? undefined : { route, id: decodeURIComponent(id) };
  };
}

function asBody(body: unknown): Body {
  if (body === undefined) return {};
  if (typeof body === "object" && body !== null) return body;
  throw validationError("body", "The body must be a JSON object");
}
