/**
 * The Inventory over the platform's documented list of instances (`instances-v2`), called through Cloudflare's own client.
 *
 * The list is asked for without its filter by state: `active` would leave out words that this version does not know.
 */
import { BaseApplications } from "cloudflare/resources/containers/applications/applications";
import { BaseInstances } from "cloudflare/resources/containers/applications/instances";
import { createClient } from "cloudflare/tree-shakable";
import { z } from "zod";
import type { Instant } from "../workspace.ts";
import type { InstanceState, Inventory, ListedInstance, Listing } from "./inventory.ts";
import { type PageLimits, type PlatformList, PlatformProblem, readPages } from "./platform-pages.ts";

export interface InstanceListSettings {
  readonly accountId: string;
  readonly apiToken: string;
  /** The application's name; wrangler's default is `<worker>-<class>` in lower case. */
  readonly application: string;
  readonly baseUrl?: string;
  readonly fetch?: typeof fetch;
  readonly now: () => Instant;
  /** From a request to the last byte of its answer. */
  readonly pageTimeoutMs: number;
  /** For one `list()` as a whole. */
  readonly listTimeoutMs: number;
}

const BASE_URL = "https://api.cloudflare.com/client/v4";
/** The day whose API this was written for; the client would send today's. */
const API_VERSION = "2026-11-30";
/** The most that the API gives at once. */
const INSTANCES_PER_PAGE = 1000;
const APPLICATIONS_PER_PAGE = 500;

const STATES: ReadonlyMap<string | undefined, InstanceState> = new Map([
  ["running", "Running"],
  ["unhealthy", "Running"],
  ["provisioning", "Settling"],
  ["placed", "Settling"],
  ["stopping", "Settling"],
  ["stopped", "Stopped"],
  ["failed", "Stopped"],
  ["inactive", "Stopped"],
]);

const ResultInfo = z.object({ next_page_token: z.string().nullish() });

/** Documented as required: `result_info`, each `id` and `status`. An instance without a status is listed all the same. */
const InstancePage = z.object({
  result: z.array(
    z.object({
      id: z
        .string()
        .toLowerCase()
        .regex(/^[0-9a-f]{64}$/),
      name: z.string().nullish().catch(null),
      status: z.object({ state: z.string() }).nullish().catch(null),
      started_at: z.string().nullish().catch(null),
    }),
  ),
  result_info: ResultInfo,
});

const ApplicationPage = z.object({
  result: z.array(z.object({ id: z.string().min(1), name: z.string() })),
  result_info: ResultInfo.nullish(),
});

export function createInstanceList(settings: InstanceListSettings): Inventory {
  const { accountId, application, now, pageTimeoutMs, listTimeoutMs } = settings;
  const api = createApi(settings).containers.applications;
  let applicationId: string | null = null;

  async function findApplication(limits: PageLimits): Promise<string> {
    const isMeant = ({ name }: { name: string }) => name.toLowerCase() === application.toLowerCase();
    for (const name of new Set([application, application.toLowerCase()])) {
      const query = { account_id: accountId, name, per_page: APPLICATIONS_PER_PAGE };
      const request: Request = (token, options) => api.list({ ...query, ...token }, options).asResponse();
      const applications = await readPages({ title: "The list of applications", page: ApplicationPage, request }, limits);
      const [found, another] = applications.filter(isMeant);
      if (another !== undefined) throw new PlatformProblem("NotFound", `More than one container application is named "${application}".`);
      if (found !== undefined) return found.id;
    }
    throw new PlatformProblem("NotFound", `No container application is named "${application}".`);
  }

  async function listInstances(id: string, limits: PageLimits): Promise<Listing> {
    const query = { account_id: accountId, per_page: INSTANCES_PER_PAGE };
    const request: Request = (token, options) => api.instances.list(id, { ...query, ...token }, options).asResponse();
    try {
      const items = await readPages({ title: "The list of instances", page: InstancePage, request }, limits);
      return { kind: "Complete", instances: items.map(describe) };
    } catch (error) {
      if (!(error instanceof PlatformProblem)) throw error;
      if (error.status === 404) applicationId = null;
      if (error.status === 400 && error.reason === "Malformed") return { kind: "NotEnabled", message: error.message };
      throw error;
    }
  }

  return {
    async list(): Promise<Listing> {
      const limits: PageLimits = { now, pageTimeoutMs, deadlineTime: now() + listTimeoutMs };
      try {
        applicationId ??= await findApplication(limits);
        return await listInstances(applicationId, limits);
      } catch (error) {
        const unforeseen = new PlatformProblem("Malformed", "The list of instances met an error of this version.");
        const { reason, message, retryAfterMs } = error instanceof PlatformProblem ? error : unforeseen;
        return { kind: "Failed", reason, message, retryAfterMs };
      }
    },
  };
}

type Request = PlatformList<unknown>["request"];

function createApi({ apiToken, baseUrl = BASE_URL, fetch }: InstanceListSettings) {
  return createClient({
    resources: [BaseApplications, BaseInstances],
    apiToken,
    baseURL: baseUrl,
    apiVersion: API_VERSION,
    maxRetries: 0,
    logLevel: "off",
    // A redirect would carry the token elsewhere.
    fetchOptions: { redirect: "manual" },
    // The client would take these from the environment.
    apiKey: null,
    apiEmail: null,
    userServiceKey: null,
    ...(fetch === undefined ? {} : { fetch }),
  });
}

function describe({ id, name, status, started_at }: z.infer<typeof InstancePage>["result"][number]): ListedInstance {
  const startedTime = Date.parse(started_at ?? "");
  return {
    doId: id,
    name: name ?? null,
    state: STATES.get(status?.state) ?? "Unknown",
    startedTime: Number.isNaN(startedTime) ? null : startedTime,
  };
}
