/** So many workspaces that are Ready, in the world and in the database as a pass leaves them, without the trouble of starting each. */
import { toObservedState } from "../../../src/controller/compare.ts";
import { specHash } from "../../../src/controller/spec-hash.ts";
import { readyStatus } from "../../support/builders.ts";
import { type Controller, NOW, SPEC, d1, uidOf } from "./support.ts";

export async function settle(controller: Controller, count: number, phaseOf?: (n: number) => number): Promise<readonly string[]> {
  const rows = Array.from({ length: count }, (_, index) => {
    const uid = uidOf(index + 1);
    const phase = phaseOf === undefined ? Number.parseInt(uid.slice(0, 8), 16) % 1_000_000 : phaseOf(index);
    return { uid, name: `w-${index + 1}`, phase, ...controller.world.fleet.identify(uid, 1) };
  });
  const { world } = controller;
  const { startMs } = world.defaults;
  const { onEvent } = world;
  world.onEvent = () => {};
  controller.world.defaults.startMs = 0;
  const order = {
    startId: "settled",
    timeoutMs: 1000,
    directory: SPEC.directory,
    env: SPEC.env,
    specHash: specHash(SPEC),
    adopt: false,
    prepareTimeoutMs: 60_000,
    restore: null,
    setup: [],
  };
  await controller.clock.run(
    Promise.all(rows.map((row) => controller.world.fleet.start(row, 0, { ...order, workspaceUid: row.uid }, 1000))),
  );
  const looked = await controller.clock.run(controller.world.fleet.observe(controller.world.fleet.identify(rows[0]?.uid ?? "", 1), 0));
  await d1.batch([
    d1
      .prepare(
        `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version,
           status, incarnation, ready_time, observed, resync_phase)
         SELECT value ->> 'uid', 'default', value ->> 'name', ?1, '{}', '{}', 1, 1, 0, 1, ?2, 1, ?3, ?4, value ->> 'phase' FROM json_each(?5)`,
      )
      .bind(JSON.stringify(SPEC), JSON.stringify(readyStatus), NOW - 60_000, JSON.stringify(toObservedState(looked)), JSON.stringify(rows)),
    d1
      .prepare(
        `INSERT INTO instances (do_id, sandbox_id, workspace_uid, namespace, name, incarnation, admitted_time)
         SELECT value ->> 'doId', value ->> 'sandboxId', value ->> 'uid', 'default', value ->> 'name', 1, 0 FROM json_each(?1)`,
      )
      .bind(JSON.stringify(rows)),
  ]);
  controller.world.defaults.startMs = startMs;
  controller.world.onEvent = onEvent;
  controller.uids.push(...rows.map(({ uid }) => uid));
  controller.world.calls.length = 0;
  return rows.map(({ uid }) => uid);
}
