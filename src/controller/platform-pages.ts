/**
 * Every page of one of the platform's lists, or a `PlatformProblem`: nothing in between.
 *
 * 1. The client's own pages are not used: they take an answer without a list for an empty one, and an empty page for the last.
 * 2. A message names HTTP statuses and Cloudflare's error codes: nothing else that the platform wrote, no text of an error.
 * 3. Nothing is tried twice.
 */
import { APIError } from "cloudflare/core/error";
import { z } from "zod";
import type { Instant } from "../workspace.ts";
import type { Listing } from "./inventory.ts";

type Reason = Extract<Listing, { kind: "Failed" }>["reason"];

export class PlatformProblem extends Error {
  override readonly name = "PlatformProblem";
  readonly reason: Reason;
  /** Of the answer, where there was one. */
  readonly status: number | null;
  readonly retryAfterMs: number | null;

  constructor(reason: Reason, message: string, answer: { status: number; retryAfterMs: number | null } | null = null) {
    super(message);
    this.reason = reason;
    this.status = answer?.status ?? null;
    this.retryAfterMs = answer?.retryAfterMs ?? null;
  }
}

export interface PlatformList<Item> {
  /** For messages. */
  readonly title: string;
  readonly page: z.ZodType<Page<Item>>;
  readonly request: (query: { page_token?: string }, options: { signal: AbortSignal }) => Promise<Response>;
}

interface Page<Item> {
  readonly result: readonly Item[];
  readonly result_info?: { readonly next_page_token?: string | null | undefined } | null | undefined;
}

export interface PageLimits {
  readonly now: () => Instant;
  /** From a request to the last byte of its answer. */
  readonly pageTimeoutMs: number;
  /** For all pages together. */
  readonly deadlineTime: Instant;
}

/** Bounds a list that never ends. */
const MAX_PAGES = 100;
/** "Invalid request headers", with HTTP 400: the token does not even look like one. */
const CODE_INVALID_HEADERS = 6003;

/** No answer is taken for a list that does not say so itself. */
const Success = z.object({ success: z.literal(true) });
const Refusal = z.object({ success: z.literal(false), errors: z.unknown() });
const ErrorCodes = z.array(z.object({ code: z.int() }));

export async function readPages<Item extends { readonly id: string }>(list: PlatformList<Item>, limits: PageLimits): Promise<Item[]> {
  const items = new Map<string, Item>();
  const tokens = new Set<string>();
  let token: string | null = null;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const page: Page<Item> = await readPage(list, token, limits);
    for (const item of page.result) {
      if (items.has(item.id)) throw new PlatformProblem("Changed", `${list.title} changed while it was read.`);
      items.set(item.id, item);
    }
    token = page.result_info?.next_page_token || null;
    if (token === null) return [...items.values()];
    if (tokens.has(token)) throw new PlatformProblem("Changed", `${list.title} led back to a page that was read before.`);
    tokens.add(token);
  }
  throw new PlatformProblem("Malformed", `${list.title} has more than ${MAX_PAGES} pages.`);
}

async function readPage<Item>(list: PlatformList<Item>, token: string | null, limits: PageLimits): Promise<Page<Item>> {
  const timeoutMs = Math.min(limits.pageTimeoutMs, limits.deadlineTime - limits.now());
  const text = await within(timeoutMs, async (signal) => {
    const response = await list.request(token === null ? {} : { page_token: token }, { signal });
    return response.text();
  }).catch((error: unknown) => {
    throw problemOf(error, list.title, token === null, limits.now());
  });
  const body = parseJson(text);
  const refused = Refusal.safeParse(body);
  if (refused.success) throw new PlatformProblem("Unavailable", refusal(list.title, 200, codesOf(refused.data.errors)));
  const page = list.page.safeParse(body);
  if (!page.success || !Success.safeParse(body).success) throw new PlatformProblem("Malformed", `${list.title} is not as documented.`);
  return page.data;
}

class TimeoutError extends Error {}

/** Rejects in time even where the request does not heed the signal. */
async function within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (timeoutMs <= 0) throw new TimeoutError();
  const aborted = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new TimeoutError());
      aborted.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([work(aborted.signal), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function problemOf(error: unknown, title: string, isFirstPage: boolean, now: Instant): PlatformProblem {
  if (error instanceof TimeoutError) return new PlatformProblem("Timeout", `${title} was not answered in time.`);
  if (!(error instanceof APIError) || error.status === undefined) {
    return new PlatformProblem("Unavailable", `${title} was not answered, or not to the end.`);
  }
  const { status, errors, headers } = error as APIError<number, Headers>;
  const codes = codesOf(errors);
  const answer = { status, retryAfterMs: parseRetryAfter(headers.get("Retry-After"), now) };
  return new PlatformProblem(reasonOf(status, codes, isFirstPage), refusal(title, status, codes), answer);
}

function reasonOf(status: number, codes: readonly number[], isFirstPage: boolean): Reason {
  if (status === 401 || status === 403 || (status === 400 && codes.includes(CODE_INVALID_HEADERS))) return "Unauthorised";
  if (status === 400 && !isFirstPage) return "Changed";
  if (status === 404) return "NotFound";
  if (status === 429) return "RateLimited";
  return status >= 500 ? "Unavailable" : "Malformed";
}

function refusal(title: string, status: number, codes: readonly number[]): string {
  return `${title} was refused with HTTP ${[status, ...codes.map((code) => `code ${code}`)].join(", ")}.`;
}

function codesOf(errors: unknown): readonly number[] {
  return ErrorCodes.safeParse(errors).data?.map(({ code }) => code) ?? [];
}

/** RFC 9110, section 10.2.3: seconds or a date. */
function parseRetryAfter(value: string | null, now: Instant): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const time = Date.parse(value);
  return Number.isNaN(time) ? null : Math.max(0, time - now);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
