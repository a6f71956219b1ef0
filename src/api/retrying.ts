/** Writes by compare-and-swap: one that came too late is decided again from what is there now. */
import { Problem } from "./problem.ts";

/** Losing this often in a row takes that many other writers of one thing. */
const MAX_ROUNDS = 8;
const CONFLICT_RETRY_SECONDS = 1;

/** `attempt` answers null where its write came too late. Throws CONFLICT. */
export async function untilWritten<Result>(attempt: () => Promise<Result | null>): Promise<Result> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const result = await attempt();
    if (result !== null) return result;
  }
  throw new Problem("CONFLICT", "Others kept writing at the same time; send the request again.", {
    retryAfterSeconds: CONFLICT_RETRY_SECONDS,
  });
}
