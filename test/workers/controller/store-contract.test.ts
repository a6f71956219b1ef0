/** The product's store over D1, held to what every controller store must do; and step by step to what the simulation's does. */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { poke } from "../../../src/sandbox/poke.ts";
import { deleteBackup, requestBackup } from "../../../src/store/backup-intent.ts";
import { createControllerStore } from "../../../src/store/controller-store.ts";
import { DEFAULT_SETTINGS } from "../../../src/store/controller-settings.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { createWorkspace, replaceWorkspace, requestDeletion } from "../../../src/store/intent.ts";
import { listWorkspaces } from "../../../src/store/reading.ts";
import type { Workspace, WorkspaceSpec } from "../../../src/workspace.ts";
import { storeContract } from "../../contract/store.ts";
import { type Columns, type Look, NOW, type StoreWorld, specOf, uidOf, without } from "../../contract/store-world.ts";
import { memoryWorld } from "../../core/simulation/memory-world.ts";
import { type About, commandsOf, type Step } from "../../simulation/store-steps.ts";
import { putBackup } from "./store-support.ts";
import { d1, emptyTables } from "./support.ts";

const db = openDatabase(d1);

/** What the API tells of is none of the controller's. */
const BY_API = { actor: "test" };

async function d1World(): Promise<StoreWorld> {
  await emptyTables();
  const patch: StoreWorld["patch"] = async (uid, columns) => {
    for (const [column, value] of Object.entries(columns)) {
      await d1
        .prepare(`UPDATE workspaces SET ${snake(column)} = ? WHERE uid = ?`)
        .bind(value, uid)
        .run();
    }
  };
  return {
    store: createControllerStore(db),
    async create(name, n, columns = {}) {
      const uid = uidOf(n);
      await createWorkspace(db, { uid, namespace: "default", name, labels: {}, annotations: {}, spec: specOf(), now: NOW }, BY_API);
      await patch(uid, columns);
      return uid;
    },
    patch,
    async replace(uid, spec, now) {
      const current = await workspace(uid);
      if (current !== null)
        await replaceWorkspace(db, current, { ...PLAIN, spec, sourceChanged: isOtherSource(current.spec, spec), now }, BY_API);
    },
    async delete(uid, now, finalBackup) {
      const current = await workspace(uid);
      if (current !== null) await requestDeletion(db, current, now, finalBackup === undefined ? BY_API : { ...BY_API, finalBackup });
    },
    async requestBackup(uid, id, now) {
      const current = await workspace(uid);
      const asked = current === null ? null : await requestBackup(db, current, { id, directory: "/workspace", now }, BY_API);
      return asked === null ? null : { id: asked.backup.id, created: asked.created };
    },
    deleteBackup: (name, id, now) => deleteBackup(db, { namespace: "default", name }, id, now, BY_API),
    putBackup,
    poke: (uid, now) => poke(d1, uid, now),
    async requestDestroy(doId, now) {
      await d1.prepare("UPDATE instances SET destroy_request_time = ? WHERE do_id = ?").bind(now, doId).run();
    },
    async protect(doId) {
      await d1.prepare("UPDATE unclaimed SET protected = 1 WHERE do_id = ?").bind(doId).run();
    },
    async set(change) {
      const { paused, gcMode, allowEmpty, laneWidth, brakeReleasedUntilTime } = { ...DEFAULT_SETTINGS, ...change };
      await d1
        .prepare("INSERT OR REPLACE INTO settings VALUES (1, 1, ?, ?, ?, ?, ?)")
        .bind(Number(paused), gcMode, Number(allowEmpty), laneWidth, brakeReleasedUntilTime)
        .run();
    },
    look,
  };
}

const PLAIN = { labels: {}, annotations: {}, specChanged: true, change: "" };

function isOtherSource(stored: unknown, { source }: WorkspaceSpec): boolean {
  return JSON.stringify((stored as WorkspaceSpec).source) !== JSON.stringify(source);
}

async function workspace(uid: string): Promise<Workspace | null> {
  const { items } = await listWorkspaces(db, { namespaces: null, labels: [], after: null, limit: 100 });
  return items.find((item) => item.uid === uid) ?? null;
}

type Row = Record<string, unknown>;

async function look(): Promise<Look> {
  const rows = async (query: string) => (await d1.prepare(query).all<Row>()).results.map(camelRow);
  const [controller] = await rows("SELECT * FROM controller");
  const workspaces = (await rows("SELECT * FROM workspaces ORDER BY rowid")).map((row) => {
    const columns = without(row, "uid", "namespace", "name", "spec", "labels", "annotations", "revision", "creationTime");
    const finalBackup = row["finalBackup"] ?? ("Skip" satisfies Columns["finalBackup"]);
    return [row["name"], { ...columns, finalBackup, status: json(row["status"]), observed: json(row["observed"]) }];
  });
  return {
    workspaces: Object.fromEntries(workspaces) as Look["workspaces"],
    instances: (await rows("SELECT do_id, running, destroy_request_time FROM instances ORDER BY rowid")).map((row) => ({
      ...row,
      running: row["running"] === 1,
    })) as unknown as Look["instances"],
    lane: (await rows("SELECT start_id, slot, deadline_time FROM start_lane ORDER BY slot")) as unknown as Look["lane"],
    unclaimed: (await rows("SELECT * FROM unclaimed ORDER BY rowid")).map(toUnclaimed) as unknown as Look["unclaimed"],
    backups: (await rows("SELECT * FROM backups ORDER BY rowid")) as unknown as Look["backups"],
    unclaimedBackups: (await rows("SELECT * FROM unclaimed_backups ORDER BY object_id")) as unknown as Look["unclaimedBackups"],
    controller: controller === undefined ? null : toController(controller),
    events: Number((await rows("SELECT count(*) AS n FROM events WHERE actor IS NULL"))[0]?.["n"]),
  };
}

function toUnclaimed(row: Row): Row {
  const { workspaceUid, namespace, name, incarnation } = row;
  const owner = workspaceUid === null ? null : { uid: workspaceUid, namespace, name, incarnation };
  const columns = without(row, "workspaceUid", "namespace", "name", "incarnation", "destroyRequestTime");
  return { ...columns, owner, protected: row["protected"] === 1 };
}

function toController(row: Row): Look["controller"] {
  const columns = without(row, "id", "holder", "brakeReason", "brakeMessage");
  return { ...columns, inventory: json(row["inventory"]), backupSweep: json(row["backupSweep"]) } as unknown as Look["controller"];
}

function json(text: unknown): unknown {
  return typeof text === "string" ? JSON.parse(text) : null;
}

function snake(column: string): string {
  return column.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelRow(row: Row): Row {
  const camel = (column: string) => column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [camel(column), value]));
}

storeContract("D1", d1World);

/** So that a run about backups begins with something that can have them. */
const PRELUDE = { workspaces: [], backups: ["take the lease", "create", "create", "load", "load"] };

it.each<About>(["workspaces", "backups"])(
  "does with %s whatever the simulation's store does, step by step",
  { timeout: 120_000 },
  async (about) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ step: fc.nat(), a: fc.nat(), b: fc.nat() }), { minLength: 40, maxLength: 120, size: "max" }),
        async (draws) => {
          const [one, other] = [await d1World(), memoryWorld()];
          const [oneSteps, otherSteps] = [commandsOf(one, about), commandsOf(other, about)];
          const prelude = PRELUDE[about].map((wanted, a) => ({ step: oneSteps.findIndex(({ name }) => name === wanted), a, b: 4 }));
          for (const { step, a, b } of [...prelude, ...draws]) {
            const perform = (steps: readonly Step[]) => (steps[step % steps.length] as Step).run(a, b);
            const name = oneSteps[step % oneSteps.length]?.name;
            expect(await perform(oneSteps), name).toEqual(await perform(otherSteps));
          }
          expect(await one.look()).toEqual(await other.look());
        },
      ),
      { endOnFailure: true, numRuns: 25 },
    );
  },
);
