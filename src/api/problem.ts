/**
 * Every error answer: RFC 9457 `application/problem+json`, with a code that clients decide on. A problem names fields and
 * rules, never the values a caller sent: those may be secrets.
 */
import { z } from "@hono/zod-openapi";

/** The status of each code. */
const STATUS = {
  MALFORMED_JSON: 400,
  INVALID_NAME: 400,
  INVALID_QUERY: 400,
  INVALID_PAGE_TOKEN: 400,
  INVALID_HEADER: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  QUOTA_EXCEEDED: 403,
  NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  BEING_DELETED: 409,
  CONFLICT: 409,
  NAME_TAKEN: 409,
  INSTANCE_PROTECTED: 409,
  INSTANCE_CLAIMED: 409,
  INSTANCE_NOT_RUNNING: 409,
  INSTANCE_BEING_DESTROYED: 409,
  BACKUPS_DISABLED: 409,
  BACKUP_IN_PROGRESS: 409,
  BACKUP_IN_USE: 409,
  PRECONDITION_FAILED: 412,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  INVALID_SPEC: 422,
  INVALID_BODY: 422,
  INTERNAL: 500,
  STORE_UNAVAILABLE: 503,
  NOT_READY: 503,
  WAIT_TIMEOUT: 504,
} as const;

export type ProblemCode = keyof typeof STATUS;

/** With the type `about:blank`, RFC 9457 has the title be the phrase of the status. */
const TITLES: Readonly<Record<(typeof STATUS)[ProblemCode], string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  412: "Precondition Failed",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  500: "Internal Server Error",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

const fieldErrorSchema = z
  .object({
    pointer: z.string().meta({
      description: "A JSON pointer (RFC 6901) into the body, or `query/<name>`, `path/<name>`, `header/<name>`.",
      example: "/spec/directory",
    }),
    detail: z.string(),
  })
  .openapi("FieldError");

export type FieldError = z.infer<typeof fieldErrorSchema>;

export const problemSchema = z
  .object({
    type: z.literal("about:blank"),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(Object.keys(STATUS) as [ProblemCode, ...ProblemCode[]]),
    requestId: z.string(),
    errors: z.array(fieldErrorSchema).optional(),
    retryAfterSeconds: z.int().optional(),
  })
  .openapi("Problem");

export interface ProblemOptions {
  readonly errors?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown anywhere below a handler; becomes the answer. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly detail: string;
  readonly options: ProblemOptions;

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(code);
    this.code = code;
    this.detail = detail;
    this.options = options;
  }
}

export function toProblemResponse(problem: Problem, requestId: string): Response {
  const { errors, retryAfterSeconds, headers } = problem.options;
  const status = STATUS[problem.code];
  const body: z.infer<typeof problemSchema> = {
    type: "about:blank",
    title: TITLES[status],
    status,
    detail: problem.detail,
    code: problem.code,
    requestId,
    ...(errors && { errors: [...errors] }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "Content-Type": "application/problem+json",
      ...(retryAfterSeconds !== undefined && { "Retry-After": String(retryAfterSeconds) }),
      ...headers,
    },
  });
}
