import { beforeEach, describe, expect, it } from "vitest";
import { type DriftBody, driftSchema } from "../../../src/api/drift-schema.ts";
import { writeBackup, writeController, writeInstance, writeUnclaimedBackup } from "./rows.ts";
import { d1, NOW, openApi, pathOf, startEmpty, type TestApi, testConfig, TOKENS } from "./support.ts";

const [FIRST, SECOND] = ["a987fbc9-4bed-4078-8f07-9141ba07c9f3", "b987fbc9-4bed-4078-8f07-9141ba07c9f3"] as const;
let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
  await writeController();
});

async function drift(query = "", token: string = TOKENS.operator): Promise<DriftBody> {
  const response = await api.send("GET", `/v1/drift${query}`, { token });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return driftSchema.parse(await response.json());
}

async function putOverdue(namespace: string, name: string): Promise<void> {
  await api.send("PUT", pathOf(namespace, name), { json: { spec: { backup: { everySeconds: 60 } } } });
  await writeInstance(namespace, name, { observed: {} });
  await d1
    .prepare("UPDATE workspaces SET ready_time = ? WHERE name = ?")
    .bind(NOW - 3_600_000, name)
    .run();
}

/** Suspended, so that it is no drift itself. */
async function putLost(namespace: string, name: string, lostTime: number): Promise<string> {
  await api.send("PUT", pathOf(namespace, name), { json: { spec: { operatingMode: "Suspended" } } });
  return await writeBackup({ namespace, name, lostTime });
}

describe("drift of backups", () => {
  it("is a good one that is too old, in full", async () => {
    await putOverdue("default", "a");
    const { items, summary } = await drift();
    expect(summary).toEqual({ BackupOverdue: 1 });
    expect(items).toMatchObject([
      {
        type: "BackupOverdue",
        workspace: { namespace: "default", name: "a" },
        differences: [{ field: "/spec/backup/everySeconds", desired: "60 s", observed: "none" }],
        plannedAction: "Backup",
      },
    ]);
    expect(items[0]?.backup).toBeUndefined();
  });

  it("is not what a good one of lately, or of this start, answers", async () => {
    await putOverdue("default", "a");
    await writeBackup({ name: "a" });
    await putOverdue("default", "b");
    await d1.prepare("UPDATE workspaces SET ready_time = ? WHERE name = 'b'").bind(NOW).run();
    expect((await drift()).items).toEqual([]);
  });

  it("is objects of no record, in full", async () => {
    await writeUnclaimedBackup(FIRST);
    expect((await drift()).items).toEqual([
      {
        type: "BackupOrphaned",
        backup: { id: null, objectId: FIRST },
        differences: [{ field: "/backup/objects", desired: "none", observed: "4096 bytes" }],
        firstSeenTime: "2026-11-30T11:50:00.000Z",
        timesSeen: 3,
        ageSeconds: 600,
        plannedAction: "Remove",
        blockedBy: "Grace",
        reason: "NoRow",
        message: "",
      },
    ]);
  });

  it("is a record of no objects, which names its backup and its workspace", async () => {
    const id = await putLost("default", "a", NOW - 5000);
    expect((await drift()).items).toMatchObject([
      {
        type: "BackupOrphaned",
        workspace: { namespace: "default", name: "a" },
        backup: { id, objectId: id },
        ageSeconds: 5,
        plannedAction: "None",
        reason: "NoObjects",
      },
    ]);
  });

  it.each<[string, Parameters<typeof writeController>[0], object, string | undefined]>([
    ["the grace of objects", {}, {}, "Grace"],
    ["nothing after the grace", {}, { firstSeenTime: NOW - 86_400_000 }, undefined],
    ["the brake of the last sweep of the bucket", { backupSweep: { brake: "TooManyOrphans" } }, { firstSeenTime: 0 }, "TooManyOrphans"],
    ["not the brake of instances", { inventory: { brake: "TooManyOrphans" } }, { firstSeenTime: 0 }, undefined],
    ["nothing before the first sweep of the bucket", { backupSweep: null }, { firstSeenTime: 0 }, undefined],
  ])("is held back by %s", async (_sentence, controller, objects, blockedBy) => {
    await writeController(controller);
    await writeUnclaimedBackup(FIRST, objects);
    expect((await drift()).items.map((item) => item.blockedBy)).toEqual([blockedBy]);
  });

  it("is no longer held back by a brake that an operator has released", async () => {
    await writeController({ backupSweep: { brake: "TooManyOrphans" } });
    await writeUnclaimedBackup(FIRST, { firstSeenTime: 0 });
    await api.send("PUT", "/v1/controller", { json: { brakeReleasedUntilTime: "2026-11-30T13:00:00Z" } });
    expect((await drift()).items.map((item) => item.blockedBy)).toEqual([undefined]);
  });

  it("comes after the workspaces, by age, and in pages that hold each item once", async () => {
    await putOverdue("default", "a");
    const lost = [await putLost("default", "b", NOW - 700_000), await putLost("default", "c", NOW - 1000)];
    for (const objectId of [SECOND, FIRST]) await writeUnclaimedBackup(objectId);
    const shown: string[] = [];
    for (let token: string | null = ""; token !== null;) {
      const page: DriftBody = await drift(`?limit=1${token === "" ? "" : `&pageToken=${token}`}`);
      expect(page.summary).toEqual({ BackupOverdue: 1, BackupOrphaned: 4 });
      shown.push(...page.items.map(({ type, backup }) => backup?.objectId ?? type));
      token = page.nextPageToken;
    }
    expect(shown).toEqual(["BackupOverdue", lost[0], FIRST, SECOND, lost[1]]);
    expect((await drift("?type=BackupOrphaned")).items).toHaveLength(4);
    expect((await drift("?type=BackupOverdue")).items).toHaveLength(1);
  });

  it("shows an operator of some namespaces those alone, and no objects of nobody", async () => {
    await putOverdue("team-c", "a");
    await putLost("team-c", "b", NOW);
    const own = await putLost("team-a", "c", NOW);
    await writeUnclaimedBackup(FIRST);
    expect((await drift("", TOKENS.teamOperator)).items.map(({ backup }) => backup?.id)).toEqual([own]);
    expect((await drift("?namespace=team-a")).items.map(({ backup }) => backup?.id)).toEqual([own]);
  });

  it("is none where the installation takes no backups", async () => {
    await putOverdue("default", "a");
    await putLost("default", "b", NOW);
    await writeUnclaimedBackup(FIRST);
    api = await openApi({ config: { ...(await testConfig()), backups: null } });
    expect((await drift()).items).toEqual([]);
  });
});
