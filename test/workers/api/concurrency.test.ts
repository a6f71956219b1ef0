import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { d1, d1BeforeWrites, openApi, PATH, problemOf, refusalOf, startEmpty, type TestApi, workspaceOf } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const sorted = (responses: readonly Response[]) => responses.map(({ status }) => String(status)).toSorted();
const put = (directory: string, headers: Record<string, string> = {}) => api.send("PUT", PATH, { json: { spec: { directory } }, headers });

describe("writers at once", () => {
  it("of two PUTs with the same If-Match one is 200 and one is 412", async () => {
    const { metadata } = await workspaceOf(await put("/workspace"));
    const responses = await Promise.all(["/app", "/tmp"].map((directory) => put(directory, { "If-Match": metadata.etag })));
    expect(sorted(responses)).toEqual(["200", "412"]);
    expect((await workspaceOf(await api.send("GET", PATH))).metadata).toMatchObject({ generation: 2, revision: 2 });
  });

  it("of two creations with If-None-Match: * one is 201 and one is 412", async () => {
    const responses = await Promise.all(["/app", "/tmp"].map((directory) => put(directory, { "If-None-Match": "*" })));
    expect(sorted(responses)).toEqual(["201", "412"]);
  });

  it("of two equal creations one is 201 and one is 200, and both show one workspace", async () => {
    const responses = await Promise.all([put("/app"), put("/app")]);
    expect(sorted(responses)).toEqual(["200", "201"]);
    const [first, second] = await Promise.all(responses.map(workspaceOf));
    expect(first).toEqual(second);
    expect(first?.metadata).toMatchObject({ generation: 1, revision: 1 });
  });

  it("without preconditions all succeed one after the other, and each counts once", async () => {
    const responses = await Promise.all(["/app", "/tmp", "/home", "/var/tmp"].map((directory) => put(directory)));
    expect(sorted(responses)).toEqual(["200", "200", "200", "201"]);
    expect((await workspaceOf(await api.send("GET", PATH))).metadata).toMatchObject({ generation: 4, revision: 4 });
  });

  it("several DELETEs are all 202 with one deletion time and one revision", async () => {
    await put("/app");
    const responses = await Promise.all([1, 2, 3].map(() => api.send("DELETE", PATH)));
    expect(sorted(responses)).toEqual(["202", "202", "202"]);
    const bodies = await Promise.all(responses.map(workspaceOf));
    expect(new Set(bodies.map(({ metadata }) => `${metadata.deletionTime} ${metadata.revision}`)).size).toBe(1);
  });
});

/** An API whose first write is preceded by `happen`. */
async function interrupted(happen: () => Promise<unknown>): Promise<TestApi> {
  let done = false;
  const binding = d1BeforeWrites(async () => {
    if (done) return;
    done = true;
    await happen();
  });
  return await openApi({ db: openDatabase(binding) });
}

const forget = () => d1.prepare("DELETE FROM workspaces").run();

describe("if between a request's read and its write", () => {
  const wish = { json: { metadata: { labels: { by: "second" } }, spec: { directory: "/tmp" } } };

  it("another replaces it, a PUT with If-Match is 412 and one without writes on top", async () => {
    const { metadata } = await workspaceOf(await put("/workspace"));
    const conditional = await (await interrupted(() => put("/app"))).send("PUT", PATH, { ...wish, headers: { "If-Match": metadata.etag } });
    expect((await refusalOf(conditional)).code).toBe("PRECONDITION_FAILED");
    const plain = await (await interrupted(() => put("/home"))).send("PUT", PATH, wish);
    expect((await workspaceOf(plain)).metadata).toMatchObject({ generation: 4, revision: 4, labels: { by: "second" } });
  });

  it("another writes the same wish, the PUT is a no-op", async () => {
    await put("/workspace");
    const response = await (await interrupted(() => api.send("PUT", PATH, wish))).send("PUT", PATH, wish);
    expect((await workspaceOf(response)).metadata).toMatchObject({ generation: 2, revision: 2 });
  });

  it("another creates it, the PUT replaces or finds it as wished", async () => {
    const response = await (await interrupted(() => put("/app"))).send("PUT", PATH, wish);
    expect([response.status, (await workspaceOf(response)).metadata.generation]).toEqual([200, 2]);
  });

  it("another deletes it, the PUT is 409 BEING_DELETED", async () => {
    await put("/workspace");
    const response = await (await interrupted(() => api.send("DELETE", PATH))).send("PUT", PATH, wish);
    expect((await problemOf(response)).code).toBe("BEING_DELETED");
  });

  it("the name becomes free, a PUT creates a new life, and a PUT with If-Match does not", async () => {
    const { metadata } = await workspaceOf(await put("/workspace"));
    const conditional = await (await interrupted(forget)).send("PUT", PATH, { ...wish, headers: { "If-Match": metadata.etag } });
    expect(conditional.status).toBe(412);
    await put("/workspace");
    const plain = await (await interrupted(forget)).send("PUT", PATH, wish);
    expect(plain.status).toBe(201);
    expect((await workspaceOf(plain)).metadata).toMatchObject({ generation: 1, revision: 1 });
  });

  it("another life takes the name, a tag of the first life does not match it", async () => {
    const { metadata } = await workspaceOf(await put("/workspace"));
    const reborn = async () => {
      await d1.prepare("DELETE FROM workspaces").run();
      await put("/workspace");
    };
    const response = await (await interrupted(reborn)).send("DELETE", PATH, { headers: { "If-Match": metadata.etag } });
    expect((await problemOf(response)).code).toBe("PRECONDITION_FAILED");
    expect((await workspaceOf(await api.send("GET", PATH))).metadata.deletionTime).toBeNull();
  });

  it("another replaces it, a DELETE without If-Match still deletes", async () => {
    await put("/workspace");
    const response = await (await interrupted(() => put("/app"))).send("DELETE", PATH);
    expect((await workspaceOf(response)).metadata).toMatchObject({ revision: 3, deletionTime: expect.any(String) });
  });

  it("others replace it again and again, the PUT gives up with 409 CONFLICT", async () => {
    await put("/workspace");
    let writes = 0;
    const binding = d1BeforeWrites(async () => {
      writes += 1;
      await put(`/app/${writes}`);
    });
    const response = await (await openApi({ db: openDatabase(binding) })).send("PUT", PATH, wish);
    expect(response.headers.get("Retry-After")).toBe("1");
    expect(await refusalOf(response)).toEqual({ status: 409, code: "CONFLICT", pointers: [] });
    expect(writes).toBe(8);
  });
});
