/** A request's JSON body: bounded in size and depth before it is parsed, and free of what no later step could keep intact. */
import { z } from "@hono/zod-openapi";
import { limitErrors, toFieldErrors, toPointer } from "./pointer.ts";
import { type FieldError, Problem, type ProblemCode } from "./problem.ts";

const MAX_BYTES = 256 * 1024;
/** A workspace needs four levels. `JSON.parse` and everything after it recurse, so the limit is checked on the text. */
const MAX_DEPTH = 32;
const JSON_MEDIA_TYPE = /^application\/json *(; *charset=("?)utf-8\2 *)?$/i;

/** A body that describes a workspace. */
export async function readJsonBody(request: Request): Promise<unknown> {
  requireJson(request.headers);
  return parseJson(await readBytes(request), "INVALID_SPEC");
}

/** As `schema` has it. Throws INVALID_BODY. */
export async function readRequiredBody<Schema extends z.ZodType>(request: Request, schema: Schema): Promise<z.infer<Schema>> {
  requireJson(request.headers);
  return check(parseJson(await readBytes(request), "INVALID_BODY"), schema);
}

/** As `schema` has it; no body at all is as good as an empty object. Throws INVALID_BODY. */
export async function readOptionalBody<Schema extends z.ZodType>(request: Request, schema: Schema): Promise<z.infer<Schema>> {
  const bytes = await readBytes(request);
  if (bytes.length === 0) return check({}, schema);
  requireJson(request.headers);
  return check(parseJson(bytes, "INVALID_BODY"), schema);
}

function check<Schema extends z.ZodType>(body: unknown, schema: Schema): z.infer<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new Problem("INVALID_BODY", "The body is not valid; see errors.", { errors: toFieldErrors(parsed.error.issues, "body") });
}

/** Of a request that says all in its path: a field of a later version must never be read as its absence. */
export const emptySchema = z.strictObject({});

export async function readEmptyBody(request: Request): Promise<void> {
  await readOptionalBody(request, emptySchema);
}

/** `refusal`: the code of what is well-formed and cannot be kept. */
function parseJson(bytes: Uint8Array, refusal: ProblemCode): unknown {
  const text = decode(bytes);
  if (isTooDeep(text)) throw malformed(`The body is nested deeper than ${MAX_DEPTH} levels.`);
  const value = parse(text);
  const errors = limitErrors(findUnusable(value, []));
  if (errors.length > 0) throw new Problem(refusal, "The body has names or texts that cannot be kept.", { errors });
  return value;
}

function requireJson(headers: Headers): void {
  if (!JSON_MEDIA_TYPE.test(headers.get("Content-Type") ?? "")) {
    throw new Problem("UNSUPPORTED_MEDIA_TYPE", "The body must be application/json in UTF-8.", {
      errors: [{ pointer: "header/Content-Type", detail: "must be application/json" }],
    });
  }
  if ((headers.get("Content-Encoding") ?? "identity").toLowerCase() !== "identity") {
    throw new Problem("UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed.", {
      errors: [{ pointer: "header/Content-Encoding", detail: "must be absent or identity" }],
    });
  }
}

/** Counts what arrives: `Content-Length` may be absent, and only spares the reading. */
async function readBytes(request: Request): Promise<Uint8Array> {
  if (Number(request.headers.get("Content-Length") ?? 0) > MAX_BYTES) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw malformed("The body ended before it was complete.");
    });
    if (done) return concatenate(chunks, length);
    length += value.byteLength;
    if (length > MAX_BYTES) {
      await reader.cancel();
      throw tooLarge();
    }
    chunks.push(value);
  }
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw malformed("The body is not valid UTF-8.");
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/** The parser's own message quotes the text around the mistake and is not passed on. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed("The body is not well-formed JSON.");
  }
}

/**
 * Own fields called `__proto__`, which schema libraries drop silently, and texts with unpaired surrogates, which no
 * environment variable and no database text can hold.
 */
function findUnusable(value: unknown, path: readonly PropertyKey[]): readonly FieldError[] {
  if (typeof value === "string") {
    return value.isWellFormed() ? [] : [{ pointer: toPointer(path), detail: "must be well-formed Unicode" }];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    if (key === "__proto__") return [{ pointer: toPointer([...path, key]), detail: "is not an allowed name" }];
    if (!key.isWellFormed()) return [{ pointer: toPointer(path), detail: "has a name that is not well-formed Unicode" }];
    return findUnusable(child, [...path, key]);
  });
}

function malformed(detail: string): Problem {
  return new Problem("MALFORMED_JSON", detail, { errors: [{ pointer: "", detail }] });
}

function tooLarge(): Problem {
  return new Problem("BODY_TOO_LARGE", `The body is larger than ${MAX_BYTES / 1024} KiB.`);
}
