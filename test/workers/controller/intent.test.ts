import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { createWorkspace, replaceWorkspace, requestDeletion } from "../../../src/store/intent.ts";
import { admitStart, forget, saveConclusion } from "../../../src/store/progress.ts";
import { type LabelRequirement, listWorkspaces } from "../../../src/store/reading.ts";
import type { Workspace } from "../../../src/workspace.ts";
import { READY_CONCLUSION, admissionOf, admitted, conclusionOf, create, db, epoch, record, workspace } from "./store-support.ts";
import { FakeClock } from "./clock.ts";
import { all, d1, emptyTables, NOW, Process, SPEC, uidOf } from "./support.ts";
import { watchD1 } from "./watched-d1.ts";

beforeEach(emptyTables);

const CHANGED = { labels: {}, annotations: {}, spec: { ...SPEC, directory: "/app" }, specChanged: true, now: NOW + 1 };
const RELABELLED = { labels: { a: "b" }, annotations: {}, spec: SPEC, specChanged: false, now: NOW + 1 };

function countersOf({ revision, generation }: Workspace) {
  return { revision, generation };
}

describe("the three counters", () => {
  it("begin at one, and rise with a change of the spec", async () => {
    const created = await create("a", 1);
    expect(countersOf(created)).toEqual({ revision: 1, generation: 1 });
    const replaced = await replaceWorkspace(db, created, CHANGED);
    expect(replaced).toMatchObject({ revision: 2, generation: 2, spec: CHANGED.spec });
    expect(await all("SELECT next_reconcile_time AS t FROM workspaces")).toEqual([{ t: NOW + 1 }]);
  });

  it("leave the generation where only labels change, and call no controller", async () => {
    const created = await create("a", 1);
    await d1.exec("UPDATE workspaces SET next_reconcile_time = NULL");
    const replaced = await replaceWorkspace(db, created, RELABELLED);
    expect(replaced).toMatchObject({ revision: 2, generation: 1, labels: { a: "b" } });
    expect(await all("SELECT next_reconcile_time AS t FROM workspaces")).toEqual([{ t: null }]);
  });

  it("leave the generation at a deletion, which makes the row due", async () => {
    const created = await create("a", 1);
    const deleted = await requestDeletion(db, created, NOW + 3);
    expect(deleted).toMatchObject({ revision: 2, generation: 1, deletionTime: NOW + 3 });
    expect(await all("SELECT next_reconcile_time AS t FROM workspaces")).toEqual([{ t: NOW + 3 }]);
  });

  it("gke-labs/kube-agents#534, kubernetes-sigs/agent-sandbox#1316: are not moved by the controller, but the resource version is, so that an If-Match taken before still holds", async () => {
    const held = await epoch();
    const created = await create("a", 1);
    const before = await record("a");
    await admitStart(db, held, before, admissionOf(before, "s1"), NOW);
    const starting = await workspace("a");
    const again = await record("a");
    await saveConclusion(db, held, again, conclusionOf(again, { ...READY_CONCLUSION, laneReleased: true }), NOW);
    const ready = await workspace("a");
    expect([starting, ready].map(countersOf)).toEqual([countersOf(created), countersOf(created)]);
    expect(starting.resourceVersion).toBeGreaterThan(created.resourceVersion);
    expect(ready.resourceVersion).toBeGreaterThan(starting.resourceVersion);
    expect(await replaceWorkspace(db, created, CHANGED)).not.toBeNull();
  });

  it("give every write of any row a version above all earlier ones", async () => {
    const held = await epoch();
    const versions: number[] = [];
    const note = async (name: string) => versions.push((await workspace(name)).resourceVersion);
    await create("a", 1);
    await note("a");
    await create("b", 2);
    await note("b");
    await admitted("a", held, "s1");
    await note("a");
    await replaceWorkspace(db, await workspace("b"), CHANGED);
    await note("b");
    const again = await record("a");
    await saveConclusion(db, held, again, conclusionOf(again, { ...READY_CONCLUSION, laneReleased: true }), NOW);
    await note("a");
    await requestDeletion(db, await workspace("b"), NOW);
    await note("b");
    await forget(db, held, await record("b"), NOW);
    await create("b", 3);
    await note("b");
    expect(versions).toEqual([...new Set(versions)].toSorted((x, y) => x - y));
    const { resourceVersion } = await listWorkspaces(db, { namespaces: null, labels: [], after: null, limit: 10 });
    expect(resourceVersion).toBe(versions.at(-1));
  });
});

describe("a write by the API", () => {
  it("creates a name once, also when two ask at the same time", async () => {
    const asked = await Promise.all(
      [1, 2, 3].map((n) =>
        createWorkspace(db, { uid: uidOf(n), namespace: "default", name: "a", labels: {}, annotations: {}, spec: SPEC, now: NOW }),
      ),
    );
    expect(asked.filter((created) => created !== null)).toHaveLength(1);
  });

  it("wins once where two hold the same revision", async () => {
    const created = await create("a", 1);
    const written = await Promise.all([
      replaceWorkspace(db, created, CHANGED),
      replaceWorkspace(db, created, RELABELLED),
      requestDeletion(db, created, NOW),
    ]);
    expect(written.filter((one) => one !== null)).toHaveLength(1);
    expect((await workspace("a")).revision).toBe(2);
  });

  it("changes nothing once the workspace is being deleted, however fresh its revision", async () => {
    const deleting = await requestDeletion(db, await create("a", 1), NOW);
    if (deleting === null) throw new Error("not deleted");
    expect(await replaceWorkspace(db, deleting, CHANGED)).toBeNull();
    expect(await requestDeletion(db, deleting, NOW + 9)).toBeNull();
    expect(await workspace("a")).toEqual(deleting);
  });

  it("does not reach another life of the same name", async () => {
    const held = await epoch();
    const first = await create("a", 1);
    await forget(db, held, await record("a"), NOW);
    await create("a", 2);
    expect(await replaceWorkspace(db, first, CHANGED)).toBeNull();
    expect(await requestDeletion(db, first, NOW)).toBeNull();
  });

  it("that deletes says so also where the controller forgets the row before it is read back", async () => {
    const held = await epoch();
    const created = await create("a", 1);
    const api = new Process();
    api.onPoint = async (point) => {
      if (point === "save after") expect(await forget(db, held, await record("a"), NOW)).toBe(true);
    };
    const apiDb = openDatabase(watchD1(d1, new FakeClock(NOW), api));
    expect(await requestDeletion(apiDb, created, NOW)).toMatchObject({ uid: created.uid, deletionTime: NOW });
  });

  it("does not touch what the controller remembers", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    await saveConclusion(
      db,
      held,
      before,
      conclusionOf(before, { ...READY_CONCLUSION, failures: 3, nextRetryTime: NOW + 9, queuedTime: NOW - 9, unreachableTime: NOW - 8 }),
      NOW,
    );
    const columns = "status, incarnation, failures, next_retry_time, ready_time, queued_time, unreachable_time, resync_phase";
    const memory = await all(`SELECT ${columns} FROM workspaces`);
    await replaceWorkspace(db, await workspace("a"), CHANGED);
    await requestDeletion(db, await workspace("a"), NOW);
    expect(await all(`SELECT ${columns} FROM workspaces`)).toEqual(memory);
  });
});

describe("a list", () => {
  const labels = {
    none: {},
    front: { tier: "front" },
    back: { tier: "back", team: "a" },
    odd: { "example.com/tier": "x", 'quo"te': "y" },
    empty: { tier: "" },
  };

  async function insertLabelled() {
    for (const [index, [name, own]] of Object.entries(labels).entries()) {
      const one = { uid: uidOf(index + 1), namespace: "default", name, labels: own, annotations: {}, spec: SPEC, now: NOW };
      await createWorkspace(db, one);
    }
  }

  it.each<[string, readonly LabelRequirement[], string]>([
    ["In one value", [{ key: "tier", operator: "In", values: ["front"] }], "front"],
    ["In several values", [{ key: "tier", operator: "In", values: ["front", "back"] }], "back front"],
    ["In the empty value", [{ key: "tier", operator: "In", values: [""] }], "empty"],
    ["NotIn also matches what lacks the key", [{ key: "tier", operator: "NotIn", values: ["front"] }], "back empty none odd"],
    ["Exists", [{ key: "tier", operator: "Exists", values: [] }], "back empty front"],
    ["DoesNotExist", [{ key: "tier", operator: "DoesNotExist", values: [] }], "none odd"],
    ["a key with a slash", [{ key: "example.com/tier", operator: "Exists", values: [] }], "odd"],
    ["a key with a quote", [{ key: 'quo"te', operator: "In", values: ["y"] }], "odd"],
    [
      "several requirements, all of which must hold",
      [
        { key: "tier", operator: "Exists", values: [] },
        { key: "team", operator: "In", values: ["a"] },
      ],
      "back",
    ],
    ["no requirement", [], "back empty front none odd"],
  ])("selects by %s", async (_sentence, requirements, expected) => {
    await insertLabelled();
    const { items } = await listWorkspaces(db, { namespaces: null, labels: requirements, after: null, limit: 100 });
    expect(items.map(({ name }) => name).join(" ")).toBe(expected);
  });

  it("is not kept from everybody by one row whose labels are garbage", async () => {
    await insertLabelled();
    await d1.exec("UPDATE workspaces SET labels = '][' WHERE name = 'none'");
    const requirement: LabelRequirement = { key: "tier", operator: "In", values: ["front"] };
    const { items } = await listWorkspaces(db, { namespaces: null, labels: [requirement], after: null, limit: 100 });
    expect(items.map(({ name }) => name)).toEqual(["front"]);
  });

  it("of 2,000 workspaces in many namespaces comes in pages without a gap or a repetition", async () => {
    await d1
      .prepare(
        `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version,
           status, resync_phase)
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
         SELECT 'uid-' || i, 'ns-' || (i % 7), 'name-' || ((i * 7919) % 2000), ?1, '{}', '{}', 1, 1, 0, i, '{}', 0 FROM n`,
      )
      .bind(JSON.stringify(SPEC))
      .run();
    const seen: string[] = [];
    let after: Workspace | null = null;
    for (;;) {
      const page: readonly Workspace[] = (await listWorkspaces(db, { namespaces: null, labels: [], after, limit: 333 })).items;
      seen.push(...page.map(({ namespace, name }) => `${namespace}/${name}`));
      after = page.at(-1) ?? null;
      if (page.length < 333) break;
    }
    expect(seen).toHaveLength(2000);
    expect(new Set(seen).size).toBe(2000);
    const ordered = await all<{ n: string }>("SELECT namespace || '/' || name AS n FROM workspaces ORDER BY namespace, name");
    expect(seen).toEqual(ordered.map(({ n }) => n));
    const some = await listWorkspaces(db, { namespaces: ["ns-3", "ns-5"], labels: [], after: null, limit: 5000 });
    expect(new Set(some.items.map(({ namespace }) => namespace))).toEqual(new Set(["ns-3", "ns-5"]));
    expect(some.items).toHaveLength(286 + 285);
  });

  it("shows the live incarnation's sandbox and none where none was admitted", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    const { uid } = await admitted("a", held, "s1");
    const { items } = await listWorkspaces(db, { namespaces: ["default"], labels: [], after: null, limit: 10 });
    expect(items.map(({ sandboxId, incarnation }) => [sandboxId, incarnation])).toEqual([
      [`${uid}-1`, 1],
      [null, 0],
    ]);
  });
});
