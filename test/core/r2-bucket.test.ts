/** The bucket over an R2 binding: every page, only what is ours, and the order of a removal. */
import { expect, test } from "vitest";
import { openR2Bucket } from "../../src/controller/r2-bucket.ts";
import { OBJECT_ID } from "../support/backup-builders.ts";
import { NOW } from "../support/builders.ts";

const OTHER_ID = "0b1ec700-0000-4000-8000-000000000002";

type Listed = readonly [key: string, size: number, uploadedTime: number];
type Binding = Parameters<typeof openR2Bucket>[0];

interface Calls {
  readonly listed: unknown[];
  readonly deleted: string[];
}

/** A page at a time; the cursor is the number of the next. `deaf` are the keys that cannot be deleted. */
function bindingOf(pages: readonly (readonly Listed[])[], deaf: readonly string[] = []): Binding & Calls {
  const calls: Calls = { listed: [], deleted: [] };
  return {
    ...calls,
    async list(options) {
      calls.listed.push(options);
      const index = Number(options?.cursor ?? 0);
      const objects = (pages[index] ?? []).map(([key, size, time]) => ({ key, size, uploaded: new Date(time) }) as R2Object);
      const isLast = index >= pages.length - 1;
      return isLast
        ? { objects, truncated: false, delimitedPrefixes: [] }
        : { objects, truncated: true, cursor: String(index + 1), delimitedPrefixes: [] };
    },
    async delete(keys) {
      if (deaf.includes(String(keys))) throw new Error("the bucket refused");
      calls.deleted.push(String(keys));
    },
  };
}

const archive = (id: string, size = 10, time = NOW): Listed => [`backups/${id}/data.sqsh`, size, time];
const metadata = (id: string, size = 1, time = NOW + 5): Listed => [`backups/${id}/meta.json`, size, time];
const whole = { hasArchive: true, hasMetadata: true, uploadedTime: NOW + 5, sizeBytes: 11 };

test("the objects of a backup are one, also where a page ends between them", async () => {
  const binding = bindingOf([[archive(OBJECT_ID)], [metadata(OBJECT_ID), archive(OTHER_ID)]]);
  expect(await openR2Bucket(binding).list()).toEqual({
    kind: "Complete",
    stored: [
      { objectId: OBJECT_ID, ...whole },
      { objectId: OTHER_ID, hasArchive: true, hasMetadata: false, uploadedTime: NOW, sizeBytes: 10 },
    ],
  });
  expect(binding.listed).toEqual([
    { prefix: "backups/", limit: 1000 },
    { prefix: "backups/", limit: 1000, cursor: "1" },
  ]);
});

test("the youngest object dates them, in whatever order they come", async () => {
  const binding = bindingOf([[metadata(OBJECT_ID, 1, NOW + 5), archive(OBJECT_ID, 10, NOW)]]);
  expect(await openR2Bucket(binding).list()).toEqual({ kind: "Complete", stored: [{ objectId: OBJECT_ID, ...whole }] });
});

test("metadata alone is half a backup", async () => {
  const listing = await openR2Bucket(bindingOf([[metadata(OBJECT_ID)]])).list();
  expect(listing).toMatchObject({ stored: [{ hasArchive: false, hasMetadata: true, sizeBytes: 1 }] });
});

test.for([
  `backups/${OBJECT_ID}/notes.txt`,
  `backups/${OBJECT_ID}/data.sqsh.part`,
  `backups/${OBJECT_ID}/a/data.sqsh`,
  `backups/${OBJECT_ID.toUpperCase()}/data.sqsh`,
  `backups/my-own/data.sqsh`,
  `backups/x${OBJECT_ID}/data.sqsh`,
  "backups/data.sqsh",
  `old/backups/${OBJECT_ID}/data.sqsh`,
])("%s is not ours", async (key) => {
  expect(await openR2Bucket(bindingOf([[[key, 1, NOW]]])).list()).toEqual({ kind: "Complete", stored: [] });
});

test("a page that can not be read makes the list no list", async () => {
  const binding = bindingOf([[archive(OBJECT_ID)], []]);
  const list = (options?: R2ListOptions) => (options?.cursor === undefined ? binding.list(options) : Promise.reject(new Error("no")));
  expect(await openR2Bucket({ ...binding, list }).list()).toEqual({ kind: "Failed", message: "no" });
});

test("a bucket without an end is not read to its end", async () => {
  const endless = bindingOf(Array.from({ length: 1001 }, () => []));
  expect(await openR2Bucket(endless).list()).toEqual({ kind: "Failed", message: "The list has more than 1000 pages." });
  expect(endless.listed).toHaveLength(1000);
});

test("a bucket with as many pages as are read is complete", async () => {
  const large = bindingOf([...Array.from({ length: 999 }, () => []), [archive(OBJECT_ID)]]);
  expect(await openR2Bucket(large).list()).toMatchObject({ kind: "Complete", stored: [{ objectId: OBJECT_ID }] });
});

test("the metadata goes first: half of a backup is never restored", async () => {
  const binding = bindingOf([]);
  await openR2Bucket(binding).remove(OBJECT_ID);
  expect(binding.deleted).toEqual([`backups/${OBJECT_ID}/meta.json`, `backups/${OBJECT_ID}/data.sqsh`]);
});

test("where it does not go, the archive stays, and the caller knows", async () => {
  const binding = bindingOf([], [`backups/${OBJECT_ID}/meta.json`]);
  await expect(openR2Bucket(binding).remove(OBJECT_ID)).rejects.toThrow("the bucket refused");
  expect(binding.deleted).toEqual([]);
});
