/** Ticks that stop in the middle. */
import { Process } from "./support.ts";

/** A process that stops at the first point of that name and goes on when told. */
export function stallingAt(name: string) {
  const process = new Process();
  let thaw = (): void => {};
  let reach = (): void => {};
  const thawed = new Promise<void>((resolve) => {
    thaw = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  let isFrozen = false;
  process.onPoint = (point) => {
    isFrozen ||= point === name;
    if (!isFrozen) return;
    reach();
    return thawed;
  };
  return { process, reached, thaw };
}
