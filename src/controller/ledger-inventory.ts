/** The inventory where the platform offers no list: each instance that is watched is asked itself. */
import type { Unclaimed } from "../unclaimed.ts";
import type { Instance, Observation } from "../workspace.ts";
import type { Fleet } from "./fleet.ts";
import type { InstanceState, ListedInstance } from "./inventory.ts";

/** Null where nobody knows its incarnation, so that it cannot be asked. */
export async function listFromLedger(unclaimed: Unclaimed, fleet: Pick<Fleet, "observe">, epoch: number): Promise<ListedInstance | null> {
  const { doId, sandboxId } = unclaimed;
  const instance = addressOf(unclaimed);
  if (instance === null) return null;
  return { doId, name: sandboxId, state: stateOf(await fleet.observe(instance, epoch)), startedTime: null };
}

/** Its sandbox, as it was addressed last: that of an adopted instance is not named after its workspace. */
export function addressOf({ doId, sandboxId, owner }: Unclaimed): Instance | null {
  if (owner === null || sandboxId === null) return null;
  return { doId, sandboxId, incarnation: owner.incarnation, running: true, destroyRequested: false, adopted: false };
}

function stateOf({ kind }: Observation): InstanceState {
  switch (kind) {
    case "Running":
    case "Preparing":
    case "Unverified":
    case "Destroying":
      return "Running";
    case "Starting":
      return "Settling";
    case "Absent":
    case "Stopped":
    case "Failed":
    case "Destroyed":
      return "Stopped";
    case "Unknown":
      return "Unknown";
  }
}
