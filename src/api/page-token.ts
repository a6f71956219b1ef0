/** Page tokens: the last item's place and a digest of the query it belongs to. A token is a position and grants nothing. */
import { z } from "zod";
import { Problem } from "./problem.ts";

/** Longer than any token this version gives out. */
const MAX_LENGTH = 512;
const DIGEST_BYTES = 9;

/** `filter` is whatever must not change between two pages; `position` is ASCII once it is JSON. */
export async function encodePageToken(position: unknown, filter: string): Promise<string> {
  return toBase64Url(JSON.stringify([await digest(filter), position]));
}

/** Throws INVALID_PAGE_TOKEN. */
export async function decodePageToken<Position>(token: string, filter: string, schema: z.ZodType<Position>): Promise<Position> {
  const content = z.tuple([z.string(), schema]).safeParse(readContent(token));
  if (!content.success) throw invalid("is not a page token of this API");
  const [filterDigest, position] = content.data;
  if (filterDigest !== (await digest(filter))) throw invalid("belongs to another query");
  return position;
}

function readContent(token: string): unknown {
  if (token.length > MAX_LENGTH || !/^[A-Za-z0-9_-]+$/.test(token)) return null;
  try {
    return JSON.parse(atob(token.replaceAll("-", "+").replaceAll("_", "/")));
  } catch {
    return null;
  }
}

async function digest(filter: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(filter)));
  return toBase64Url(String.fromCharCode(...bytes.subarray(0, DIGEST_BYTES)));
}

function toBase64Url(text: string): string {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function invalid(detail: string): Problem {
  return new Problem("INVALID_PAGE_TOKEN", "The page token cannot be used here.", { errors: [{ pointer: "query/pageToken", detail }] });
}
