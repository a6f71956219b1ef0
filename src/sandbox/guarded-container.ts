/**
 * The native container as the SDK gets to see it: the same object, but for `start`, `monitor` and `getTcpPort` (invariants 2, 6 and 7).
 *
 * Must be on `ctx` before the SDK's constructor runs, which keeps its own reference.
 */
import type { ContainerWatch } from "./container-watch.ts";
import type { StartGate } from "./start-gate.ts";
import type { Traffic } from "./traffic.ts";

export function guardContainer(native: Container, gate: StartGate, watch: ContainerWatch, traffic: Traffic): Container {
  const start: Container["start"] = (options) => {
    gate.assertMayStart(Date.now());
    watch.start(gate.run?.startId ?? "", options);
  };
  const monitor: Container["monitor"] = () => watch.monitor();
  const getTcpPort: Container["getTcpPort"] = (port) => traffic.port(native.getTcpPort(port));

  return new Proxy(native, {
    get(target, property) {
      if (property === "start") return start;
      if (property === "monitor") return monitor;
      if (property === "getTcpPort") return getTcpPort;
      // Native getters and methods insist on the native receiver.
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
