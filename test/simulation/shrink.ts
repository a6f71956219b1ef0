/** The smallest script that still breaks the same promise: fewer ticks, no faults where none are needed, then ever fewer happenings. */
import type { Violation } from "./invariants.ts";
import { START_TIME } from "./simulate.ts";
import { type Happening, MINUTE_MS, type Script } from "./script.ts";

export interface ShrinkOptions {
  /** Plays a script; answers the violation that counts, if it is still there. */
  readonly violationOf: (script: Script) => Promise<Violation | null>;
  /** Days that may be played for it. */
  readonly tries: number;
}

export interface Shrunk {
  readonly script: Script;
  readonly violation: Violation;
}

export async function shrink(script: Script, violation: Violation, { violationOf, tries }: ShrinkOptions): Promise<Shrunk> {
  let best: Shrunk = { script, violation };
  let left = tries;

  async function attempt(candidate: Script): Promise<boolean> {
    if (left === 0) return false;
    left -= 1;
    const found = await violationOf(candidate);
    if (found !== null) best = { script: candidate, violation: found };
    return found !== null;
  }

  await attempt(endingSoonAfter(best));
  if (!(await attempt({ ...best.script, faultRate: 0 }))) await withoutFaultKinds(attempt, () => best.script);
  await withoutHappenings(attempt, () => best.script);
  await attempt(endingSoonAfter(best));
  return best;
}

type Attempt = (candidate: Script) => Promise<boolean>;

/** What happens after the violation did not bring it about. */
function endingSoonAfter({ script, violation }: Shrunk): Script {
  const ticks = Math.min(script.ticks, Math.ceil((violation.time - START_TIME) / MINUTE_MS) + 2);
  const happenings = script.happenings.filter(({ ms }) => ms <= ticks * MINUTE_MS);
  return { ...script, ticks, happenings };
}

async function withoutFaultKinds(attempt: Attempt, best: () => Script): Promise<void> {
  for (const kind of best().faultKinds) {
    const faultKinds = best().faultKinds.filter((other) => other !== kind);
    await attempt({ ...best(), faultKinds });
  }
}

/** All of a workspace at once first, then in ever smaller parts (Zeller's ddmin, without the complements). */
async function withoutHappenings(attempt: Attempt, best: () => Script): Promise<void> {
  const slots = [...new Set(best().happenings.map(({ slot }) => slot))];
  for (let size = Math.ceil(slots.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < slots.length; from += size) {
      const dropped = new Set(slots.slice(from, from + size));
      await attemptWithout(attempt, best(), ({ slot }) => dropped.has(slot));
    }
  }
  for (let size = Math.ceil(best().happenings.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best().happenings.length;) {
      const dropped = new Set(best().happenings.slice(from, from + size));
      if (!(await attemptWithout(attempt, best(), (happening) => dropped.has(happening)))) from += size;
    }
  }
}

async function attemptWithout(attempt: Attempt, script: Script, isDropped: (happening: Happening) => boolean): Promise<boolean> {
  const happenings = script.happenings.filter((happening) => !isDropped(happening));
  return happenings.length < script.happenings.length && attempt({ ...script, happenings });
}

/** As a person reads it. */
export function show({ seed, ticks, faultRate, faultKinds, happenings }: Script): string {
  const faults = faultRate === 0 ? "no faults" : `${(100 * faultRate).toFixed(1)} % of calls meet ${faultKinds.join(", ") || "nothing"}`;
  const lines = happenings.map(({ ms, slot, event }) => {
    const { kind, ...details } = event;
    const minutes = (ms / MINUTE_MS).toFixed(3).padStart(9);
    return `${minutes} min  ${slot === null ? "" : `w${slot} `}${kind} ${Object.keys(details).length === 0 ? "" : JSON.stringify(details)}`;
  });
  return [`seed ${seed}, ${ticks} ticks, ${faults}`, ...lines].join("\n");
}
