/** Pages of any list: `limit` and `pageToken` as sent, and what of the items read goes into the answer. */
import type { z } from "zod";
import { decodePageToken, encodePageToken } from "./page-token.ts";
import { DEFAULT_LIMIT, MAX_LIMIT } from "./schema.ts";

export interface PageOptions {
  readonly limit?: number | undefined;
  readonly pageToken?: string | undefined;
}

export interface Paging<Position> {
  /** One more than a page has: it tells whether there is a next page. */
  readonly readLimit: number;
  /** The last item of the page before; null for the first page. */
  readonly after: Position | null;
  readonly filter: string;
}

/** `filter` is whatever must not change between two pages. Throws INVALID_PAGE_TOKEN. */
export async function readPaging<Position>(
  { limit = DEFAULT_LIMIT, pageToken }: PageOptions,
  filter: unknown,
  schema: z.ZodType<Position>,
): Promise<Paging<Position>> {
  const text = JSON.stringify(filter);
  const after = pageToken === undefined ? null : await decodePageToken(pageToken, text, schema);
  return { readLimit: Math.min(limit, MAX_LIMIT) + 1, after, filter: text };
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string | null;
}

/** `items`: those after `paging.after`, `readLimit` of them if there are as many. */
export async function cutPage<Item>(
  items: readonly Item[],
  { readLimit, filter }: Paging<unknown>,
  positionOf: (item: Item) => unknown,
): Promise<Page<Item>> {
  const page = items.slice(0, readLimit - 1);
  const last = items.length < readLimit ? undefined : page.at(-1);
  return { items: page, nextPageToken: last === undefined ? null : await encodePageToken(positionOf(last), filter) };
}
