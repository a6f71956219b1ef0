import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { Container } from "./container.ts";
import type { Ledger } from "./ledger.ts";
import type { Lifecycle } from "./lifecycle.ts";

export interface InventoryOptions {
  readonly ledger: Ledger;
  readonly lifecycle: Lifecycle;
  /** The newest container of each object. */
  readonly containers: () => readonly Container[];
  /** Applications that exist before they have a container. */
  readonly applications: readonly string[];
}

interface Application {
  readonly id: string;
  readonly name: string;
}

const ACTIVE = new Set(["provisioning", "running", "stopping"]);

/** The platform's list of instances, as its API serves it: one application per worker and class. */
export function createInventoryServer(options: InventoryOptions): Server {
  return createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://inventory");
    const call = options.ledger.call({ surface: "Inventory", method: request.method ?? "", path: request.url ?? "" });
    const answer = options.lifecycle.inventoryFailure() ?? route(options, request.method ?? "", url, request.headers.authorization);
    call.status = answer.status;
    if (answer.status === 501) options.ledger.count("unimplemented");
    send(response, answer);
  });
}

interface Answer {
  readonly status: number;
  readonly result?: unknown;
  readonly resultInfo?: unknown;
}

function route(options: InventoryOptions, method: string, url: URL, authorization: string | undefined): Answer {
  const match = /^(?:\/client\/v4)?\/accounts\/[^/]+\/containers\/applications(?:\/([^/]+)\/(instances-v2|instances)(?:\/([^/]+))?)?$/.exec(
    url.pathname,
  );
  if (match === null || method !== "GET") return { status: 501 };
  if (authorization?.startsWith("Bearer ") !== true) return { status: 401 };
  const [, applicationId, kind, instanceId] = match;
  if (applicationId === undefined) return listApplications(options, url.searchParams);
  const own = options.containers().filter((container) => container.startedTime > 0 && applicationOf(container).id === applicationId);
  if (instanceId !== undefined) {
    const found = own.find((container) => container.identity.doId === instanceId);
    return found === undefined ? { status: 404 } : { status: 200, result: describeInstance(found) };
  }
  if (kind !== "instances-v2") return { status: 501 };
  return applicationsOf(options).has(applicationId) ? listInstances(own, url.searchParams) : { status: 404 };
}

function listApplications(options: InventoryOptions, query: URLSearchParams): Answer {
  const name = query.get("name");
  const found = [...applicationsOf(options).values()].filter((application) => name === null || application.name === name);
  return page(found.map(describeApplication), query, (application) => application.id, 500);
}

function listInstances(containers: readonly Container[], query: URLSearchParams): Answer {
  const state = query.get("state");
  const prefix = query.get("name_prefix") ?? "";
  const found = containers
    .map(describeInstance)
    .filter((instance) => state === null || ACTIVE.has(instance.status.state) === (state === "active"))
    .filter((instance) => instance.id.startsWith(prefix));
  return page(found, query, (instance) => instance.id, 1000);
}

/** Pages by the id of the last item, so that items that come and go between two pages neither shift nor repeat the rest. */
function page<T>(items: readonly T[], query: URLSearchParams, idOf: (item: T) => string, maximum: number): Answer {
  const perPage = Math.min(Math.max(Number(query.get("per_page") ?? 100) || 100, 1), maximum);
  const token = query.get("page_token") ?? "";
  const after = Buffer.from(token, "base64url").toString("utf8");
  const rest = items.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1)).filter((item) => idOf(item) > after);
  const result = rest.slice(0, perPage);
  const last = result.at(-1);
  const next = last === undefined || rest.length <= perPage ? undefined : Buffer.from(idOf(last)).toString("base64url");
  return {
    status: 200,
    result,
    resultInfo: { per_page: perPage, page_token: token, ...(next === undefined ? {} : { next_page_token: next }) },
  };
}

function describeApplication({ id, name }: Application) {
  return { id, name, scheduling_policy: "durable_object", max_instances: 1000, durable_objects: { namespace_id: id } };
}

function describeInstance(container: Container) {
  const updated = container.running ? container.startedTime : container.endedTime;
  const state = container.running ? (container.listening ? "running" : "provisioning") : container.exitCode === 0 ? "stopped" : "failed";
  return {
    id: container.identity.doId,
    application_id: applicationOf(container).id,
    image: container.image,
    status: {
      state,
      updated_at: new Date(updated).toISOString(),
      ...(container.exitCode === undefined ? {} : { exit_code: container.exitCode }),
    },
    started_at: new Date(container.startedTime).toISOString(),
    configuration: { vcpu: 0.25, memory: 1024, disk: 4000 },
    location: { name: "loc01", region: "LOCAL" },
  };
}

function applicationsOf(options: InventoryOptions): ReadonlyMap<string, Application> {
  const applications = [...options.applications.map(applicationNamed), ...options.containers().map(applicationOf)];
  return new Map(applications.map((each) => [each.id, each]));
}

function applicationOf({ identity }: Container): Application {
  return applicationNamed(`${identity.workerName}-${identity.className}`);
}

function applicationNamed(mixedCaseName: string): Application {
  const name = mixedCaseName.toLowerCase();
  const digest = createHash("sha256").update(name).digest("hex");
  const id = [digest.slice(0, 8), digest.slice(8, 12), `4${digest.slice(13, 16)}`, `8${digest.slice(17, 20)}`, digest.slice(20, 32)].join(
    "-",
  );
  return { id, name };
}

function send(response: ServerResponse, { status, result, resultInfo }: Answer): void {
  const success = status < 400;
  const errors = success ? [] : [{ code: 1000 + status, message: `local inventory answered ${status}` }];
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(
    JSON.stringify({
      success,
      errors,
      messages: [],
      result: result ?? null,
      ...(resultInfo === undefined ? {} : { result_info: resultInfo }),
    }),
  );
}
