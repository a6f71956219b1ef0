/** Looks at a sandbox's activity. */
import { bindings, FENCE, pause, type Subject } from "./support.ts";

/** Longer than the clock's step, and than a request takes to the container. */
export const A_WHILE_MS = 20;

export async function activityOf({ name }: Subject): Promise<number | null> {
  return (await bindings.FENCED.getByName(name).observeWorkspace(FENCE)).facts.activityTime;
}

/** Whether the activity lies later once a while has passed. */
export async function moves(subject: Subject): Promise<boolean> {
  const before = await activityOf(subject);
  await pause(A_WHILE_MS);
  return ((await activityOf(subject)) ?? 0) > (before ?? 0);
}
