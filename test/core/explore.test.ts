/** Every world that the model can reach: what must never happen on the way, and where it all ends. */
import { describe, expect, test } from "vitest";
import { type Nature, WISHES } from "./explore/events.ts";
import type { Law } from "./explore/pass.ts";
import { type Memory, roundsOf, unsettled } from "./explore/settle.ts";
import { type Atlas, type Rules, explore } from "./explore/walk.ts";
import { IDLE_SAVED, RUN_A, RUN_IDLE, RUN_MORTAL, RUN_SAVED, SUSPENDED, SUSPENDED_SAVED, type World } from "./explore/world.ts";

const LAWS: readonly Law[] = [
  "at most one start is under way (1)",
  "a start that begins holds the lane and its sandbox is in the ledger (1, 2)",
  "a start is admitted for a live wish only (2)",
  "nothing is started that failed for good in this generation (12)",
  "nothing is started again before its failure was counted (12)",
  "a failure is counted once (12)",
  "what the platform told to go has not failed (12)",
  "forgotten is only what is gone for good (3, 5)",
  "a sandbox that was destroyed is not used again",
  "nothing follows silence (4)",
  "Ready is what runs with the wished spec (8)",
  "only a permanent failure of the wished spec stalls it (12)",
  "only what nobody uses is suspended for idleness",
  "what is suspended for idleness is not started before it is woken, or its user came back while it ran",
  "whoever comes back before it is stopped is not put out for idleness",
  "only what runs too long is stopped for it, while it is wished Running",
  "only that is expired whose time has come",
  "a backup is taken of what is verified only (6)",
  "what is required is there before a container is ended by wish (6)",
];

const CRASH = { code: 137, signalled: false };
const ROLLOUT = { code: 137, signalled: true };

const NATURE: Nature = {
  wishes: {},
  endings: ["verified"],
  exits: [],
  evictions: false,
  deploys: false,
  idles: false,
  ages: false,
  retries: false,
  replacements: false,
  backups: false,
};

/** All that can befall one workspace, at every await of a pass. */
const alone: Rules = {
  ...NATURE,
  uids: ["alice"],
  wish: RUN_A,
  wishes: WISHES,
  endings: ["verified", "Transient", "Permanent", "Capacity"],
  exits: [CRASH],
  evictions: true,
  progress: ["pending", "verified", "Transient", "Permanent", "Capacity"],
  calls: ["answered", "lost", "answer lost", "kill ineffective"],
  interference: true,
  takeover: true,
};

/** A controller that at times can not read the spec. */
const illegible: Rules = {
  ...alone,
  wishes: { "run A": WISHES["run A"] },
  deploys: true,
  calls: ["answered", "lost"],
  interference: false,
};

/** Users who leave it alone and wake it. */
const sleepy: Rules = {
  ...alone,
  wish: RUN_IDLE,
  wishes: { "run idle": RUN_IDLE, suspend: SUSPENDED },
  endings: ["verified"],
  exits: [CRASH],
  evictions: false,
  idles: true,
  progress: ["pending", "verified"],
  calls: ["answered", "answer lost"],
};

/** Containers that live too long, and a time that comes. */
const mortal: Rules = {
  ...alone,
  wish: RUN_MORTAL,
  wishes: { "run mortal": RUN_MORTAL, pause: WISHES.pause },
  endings: ["verified"],
  exits: [ROLLOUT],
  evictions: false,
  ages: true,
  progress: ["pending", "verified"],
};

/** People who ask for another try, or for another sandbox. */
const asked: Rules = {
  ...alone,
  wishes: { "run A": RUN_A, suspend: SUSPENDED },
  endings: ["verified", "Permanent"],
  exits: [CRASH],
  evictions: false,
  retries: true,
  replacements: true,
  progress: ["pending", "verified"],
  calls: ["answered", "answer lost"],
};

/** Files that are to survive: deleted only with a backup, which may fail, hang, be lost, and be asked for, at every crash of a pass. */
const saving: Rules = {
  ...alone,
  wish: RUN_SAVED,
  wishes: {},
  endings: ["verified"],
  exits: [ROLLOUT],
  evictions: false,
  backups: true,
  progress: ["restoring"],
  calls: ["answered"],
  interference: false,
  deaths: true,
  takeover: false,
};

/** The same for what is suspended and resumed. */
const suspending: Rules = { ...saving, wishes: { "run saved": RUN_SAVED, "suspend saved": SUSPENDED_SAVED }, deaths: false };

/** And for what is left alone. */
const dozing: Rules = { ...saving, wish: IDLE_SAVED, idles: true, deaths: false };

/** Two that want the one place in the lane. */
const together: Rules = {
  ...alone,
  uids: ["alice", "bob"],
  wishes: {},
  endings: ["verified"],
  exits: [],
  evictions: false,
  progress: ["pending", "Capacity", "Misconfigured"],
  calls: ["answered", "lost"],
  interference: false,
};

/** Enough for the longest way home: destroy, wait, queue, start, verify, and a lane place that has to run out first. */
const ROUNDS = 10;

/** A few seconds of the processor, which others may want as well. */
const PATIENCE_MS = 60_000;

const explored = {
  alone: explore(alone),
  illegible: explore(illegible),
  sleepy: explore(sleepy),
  mortal: explore(mortal),
  asked: explore(asked),
  saving: explore(saving),
  suspending: explore(suspending),
  dozing: explore(dozing),
  together: explore(together),
};

describe.each([
  { company: "one workspace", atlas: explored.alone, worlds: 11_000, transitions: 490_000 },
  { company: "one workspace whose spec does not always parse", atlas: explored.illegible, worlds: 1100, transitions: 6800 },
  { company: "one workspace that sleeps when it is left alone", atlas: explored.sleepy, worlds: 2000, transitions: 35_000 },
  { company: "one workspace whose time is limited", atlas: explored.mortal, worlds: 1400, transitions: 47_000 },
  { company: "one workspace of which more is asked", atlas: explored.asked, worlds: 5000, transitions: 100_000 },
  { company: "one workspace that is saved", atlas: explored.saving, worlds: 14_000, transitions: 90_000 },
  { company: "one workspace that is saved before it is suspended", atlas: explored.suspending, worlds: 20_000, transitions: 80_000 },
  { company: "one workspace that is saved before it sleeps", atlas: explored.dozing, worlds: 5000, transitions: 10_000 },
  { company: "two workspaces and one lane", atlas: explored.together, worlds: 2700, transitions: 20_000 },
])("$company", ({ atlas, worlds, transitions }) => {
  test("the model did not shrink", () => {
    expect(atlas.worlds.size).toBeGreaterThanOrEqual(worlds);
    expect(atlas.transitions).toBeGreaterThanOrEqual(transitions);
  });

  test.for(LAWS)("%s", (law) => {
    expect(atlas.violations.get(law) ?? "holds in every world").toBe("holds in every world");
  });

  test(
    "from every world, once it is quiet, every workspace comes to where it is wished to be, and stays (5, 9, 13)",
    () => {
      expect(strays(atlas, null)).toEqual([]);
    },
    PATIENCE_MS,
  );
});

test(
  "a sandbox that does not answer keeps nobody else from coming to where it is wished to be (10)",
  () => {
    expect(strays(explored.together, "alice")).toEqual([]);
  },
  PATIENCE_MS,
);

/** The shortest ways to worlds that do not come to rest although all is quiet, and what is wrong with where they end. */
function strays(atlas: Atlas, silent: string | null): readonly string[] {
  const memory: Memory = new Map();
  const problems = new Map<string, string | null>();
  const found: string[] = [];
  for (const [key, world] of atlas.worlds) {
    const end = roundsOf(world, ROUNDS, silent, memory);
    const endKey = JSON.stringify(end);
    if (!problems.has(endKey)) problems.set(endKey, problemOf(end, endKey, silent, memory));
    const problem = problems.get(endKey) ?? null;
    if (problem !== null) found.push(`${problem}, after:${atlas.wayTo(key)}`);
    if (found.length === 3) break;
  }
  return found;
}

function problemOf(end: World, endKey: string, silent: string | null, memory: Memory): string | null {
  const uids = Object.keys(end.workspaces).filter((uid) => uid !== silent);
  const missing = uids.flatMap((uid) => unsettled(end, uid) ?? []);
  if (missing.length > 0) return missing.join(" and ");
  return silent === null && JSON.stringify(roundsOf(end, 1, null, memory)) !== endKey ? "does not come to rest" : null;
}
