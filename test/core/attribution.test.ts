/** Whom an instance belongs to that no ledger row names. */
import { expect, test } from "vitest";
import { createAttribution } from "../../src/controller/attribution.ts";
import type { ListedInstance } from "../../src/controller/inventory.ts";
import { instance } from "../support/builders.ts";

/** Ids that can be read. */
const fleet = {
  identify(uid: string, incarnation: number) {
    calls.push(uid);
    return instance({ doId: `do-${uid}-${incarnation}`, sandboxId: `${uid}-${incarnation}`, incarnation });
  },
};
let calls: string[] = [];

const alice = { uid: "alice", namespace: "default", name: "alice-1", incarnation: 12 };
const bob = { uid: "bob", namespace: "team", name: "bob-1", incarnation: 0 };

function listed(doId: string): ListedInstance {
  return { doId, name: "as-listed", state: "Running", startedTime: null };
}

type Row = readonly [situation: string, doId: string, owner: string | null];

// oxfmt-ignore
const table: readonly Row[] = [
  ["the incarnation of the record",                      "do-alice-12",  "alice-12"],
  ["the one before",                                     "do-alice-11",  "alice-11"],
  ["the oldest that is tried",                           "do-alice-4",   "alice-4"],
  ["one that is older still",                            "do-alice-3",   null],
  ["the one after, of a database that was restored",     "do-alice-13",  "alice-13"],
  ["the last that is tried",                             "do-alice-16",  "alice-16"],
  ["one that is later still",                            "do-alice-17",  null],
  ["the first of a workspace that has none yet",         "do-bob-1",     "bob-1"],
  ["there is no incarnation 0",                          "do-bob-0",     null],
  ["one of a workspace that has no record",              "do-carol-1",   null],
  ["the id decides, not the name",                       "as-listed",    null],
];

test.for(table)("%s", ([, doId, owner]) => {
  const attribution = createAttribution(fleet, [alice, bob])(listed(doId));
  const [uid, incarnation] = owner?.split("-") ?? [];
  const of = uid === "alice" ? alice : bob;
  expect(attribution).toEqual(
    owner === null
      ? { sandboxId: "as-listed", owner: null, ownerLives: false }
      : { sandboxId: owner, owner: { uid, namespace: of.namespace, name: of.name, incarnation: Number(incarnation) }, ownerLives: true },
  );
});

test("ids are worked out once, and only if there is somebody to ask about", () => {
  calls = [];
  const attribute = createAttribution(fleet, [alice]);
  expect(calls).toHaveLength(0);
  attribute(listed("do-x"));
  const once = calls.length;
  attribute(listed("do-y"));
  expect(once).toBe(13);
  expect(calls).toHaveLength(once);
});
