/**
 * The native container as the SDK gets to see it: the same object, but for `start`, `monitor` and `getTcpPort` (invariants 2, 6 and 7).
 *
 * Must be on `ctx` before the SDK's constructor runs, which keeps its own reference.
 */
import type { ContainerWatch } from "./container-watch.ts";
import { replaceMethods } from "./replaced-methods.ts";
import type { StartGate } from "./start-gate.ts";
import type { Traffic } from "./traffic.ts";

export function guardContainer(native: Container, gate: StartGate, watch: ContainerWatch, traffic: Traffic): Container {
  return replaceMethods(native, {
    start: (options) => {
      gate.assertMayStart(Date.now());
      watch.start(gate.run?.startId ?? "", options);
    },
    monitor: () => watch.monitor(),
    getTcpPort: (port) => traffic.port(native.getTcpPort(port)),
  });
}
