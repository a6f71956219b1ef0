/** Breadth first through every world that can be reached, so that the way to the first violation of a law is the shortest there is. */
import type { WorkspaceSpec } from "../../../src/workspace.ts";
import { memory } from "../../support/backup-builders.ts";
import { type Happenings, type Nature, agings, clock, deploys, edits, laneExpiry, mishaps } from "./events.ts";
import { type Law, type Surroundings, runPass } from "./pass.ts";
import { startable } from "./store.ts";
import { type World, bare, canonical, newWorld } from "./world.ts";

export interface Rules extends Nature, Pick<Surroundings, "progress" | "calls"> {
  readonly uids: readonly string[];
  /** What is wished at first. */
  readonly wish: WorkspaceSpec;
  /** Whether something may come between the steps of a pass. */
  readonly interference: boolean;
  /** Whether the process may die between them, where nothing else comes. */
  readonly deaths?: boolean;
  /** Whether another controller may take over in the middle of a pass. */
  readonly takeover: boolean;
}

export interface Atlas {
  readonly worlds: ReadonlyMap<string, World>;
  readonly transitions: number;
  /** The way to the first violation of each law. */
  readonly violations: ReadonlyMap<Law, string>;
  /** The way to a world. */
  readonly wayTo: (key: string) => string;
}

export function explore(rules: Rules): Atlas {
  const first = bare(canonical(newWorld(rules.uids, rules.wish, rules.backups ? memory() : null)));
  const worlds = new Map([[JSON.stringify(first), first]]);
  const origins = new Map<string, { readonly from: string; readonly by: string }>();
  const violations = new Map<Law, string>();
  let transitions = 0;

  function wayTo(key: string): string {
    const origin = origins.get(key);
    return origin === undefined ? "" : `${wayTo(origin.from)}\n  ${origin.by}`;
  }

  for (const [from, world] of worlds) {
    for (const { after, by, broken } of neighbours(world, rules)) {
      transitions += 1;
      for (const law of broken) if (!violations.has(law)) violations.set(law, `${wayTo(from)}\n  ${by}`);
      const next = bare(canonical(after));
      const key = JSON.stringify(next);
      if (worlds.has(key)) continue;
      worlds.set(key, next);
      origins.set(key, { from, by });
    }
  }
  return { worlds, transitions, violations, wayTo };
}

interface Transition {
  readonly after: World;
  readonly by: string;
  readonly broken: readonly Law[];
}

function* neighbours(world: World, rules: Rules): Generator<Transition> {
  const ofEach = rules.uids.map((uid) => ({ ...befalls(world, uid, rules), ...deploys(world, uid, rules) }));
  const happenings: Happenings = Object.assign({}, ...ofEach, laneExpiry(world), clock(world));
  for (const [by, happen] of Object.entries(happenings)) yield { after: happen(), by, broken: [] };
  for (const uid of rules.uids) yield* passes(world, uid, rules);
}

function befalls(world: World, uid: string, rules: Rules): Happenings {
  return { ...edits(world, uid, rules), ...mishaps(world, uid, rules), ...agings(world, uid, rules) };
}

function* passes(world: World, uid: string, rules: Rules): Generator<Transition> {
  for (const { result, ways } of everyWay((choose) => passWith(world, uid, rules, choose))) {
    yield { after: result.after, broken: result.broken, by: `pass ${uid}: ${ways.join(", ")}` };
  }
}

type Choose = Surroundings["choose"];

function passWith(world: World, uid: string, rules: Rules, choose: Choose) {
  const broken: Law[] = [];
  const check = (law: Law, holds: boolean) => void (holds || broken.push(law));
  const surroundings = { choose, check, calls: rules.calls, progress: rules.progress };
  const interferences = (now: World): Happenings => {
    if (!rules.interference) return rules.deaths ? { dies: () => now } : {};
    const others = { ...befalls(now, uid, rules), dies: () => now };
    return rules.takeover ? { ...others, "another controller passes": () => successorsPass(now, uid, check) } : others;
  };
  const after = runPass(world, uid, world.epoch, startable(world) === uid, { ...surroundings, interferences });
  return { after, broken };
}

/** The lease changes hands, and whoever has it now goes through a pass that nothing disturbs. */
function successorsPass(world: World, uid: string, check: Surroundings["check"]): World {
  const taken = { ...world, epoch: world.epoch + 1 };
  return runPass(taken, uid, taken.epoch, startable(taken) === uid, {
    ...UNDISTURBED,
    choose: ([way]) => way ?? "",
    check,
  });
}

export const UNDISTURBED = { interferences: () => ({}), progress: ["pending"], calls: ["answered"] } as const;

/** Runs it once for every sequence of choices that it can make. */
function* everyWay<T>(run: (choose: Choose) => T): Generator<{ readonly result: T; readonly ways: readonly string[] }> {
  const path: number[] = [];
  do {
    const ways: string[] = [];
    const sizes: number[] = [];
    const result = run((options) => {
      const index = path[ways.length] ?? 0;
      path[ways.length] = index;
      sizes.push(options.length);
      ways.push(options[index] ?? "");
      return options[index] ?? "";
    });
    yield { result, ways };
    while (path.length > 0 && (path.at(-1) ?? 0) + 1 >= (sizes[path.length - 1] ?? 0)) path.pop();
    const last = path.pop();
    if (last !== undefined) path.push(last + 1);
  } while (path.length > 0);
}
