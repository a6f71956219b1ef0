/**
 * Whom an instance belongs to that no ledger row names: a workspace that has a record may have run it under another incarnation than the
 * record knows. Ids are a pure function of uid and incarnation, so this asks nobody.
 */
import type { Claim } from "../store/unclaimed.ts";
import type { Unclaimed } from "../unclaimed.ts";
import type { Fleet } from "./fleet.ts";
import type { ListedInstance } from "./inventory.ts";

export type Attribution = Pick<Unclaimed, "sandboxId" | "owner" | "ownerLives">;

/** Incarnations before the recorded one that are tried, and such after it: a database that was restored knows an older one. */
const BEFORE = 8;
const AFTER = 4;

export function createAttribution(fleet: Pick<Fleet, "identify">, claims: readonly Claim[]): (instance: ListedInstance) => Attribution {
  let owners: ReadonlyMap<string, Attribution> | null = null;
  return ({ doId, name }) => {
    owners ??= new Map(claims.flatMap((claim) => incarnationsOf(fleet, claim)));
    return owners.get(doId) ?? { sandboxId: name, owner: null, ownerLives: false };
  };
}

function incarnationsOf(fleet: Pick<Fleet, "identify">, claim: Claim): readonly (readonly [string, Attribution])[] {
  const first = Math.max(1, claim.incarnation - BEFORE);
  const incarnations = Array.from({ length: claim.incarnation + AFTER - first + 1 }, (_, index) => first + index);
  return incarnations.map((incarnation) => {
    const { doId, sandboxId } = fleet.identify(claim.uid, incarnation);
    const { uid, namespace, name } = claim;
    return [doId, { sandboxId, owner: { uid, namespace, name, incarnation }, ownerLives: true }];
  });
}
