/** The fleet over real objects, with the unmodified SDK, keeps the same contract as the fake that the controller's tests run on. */
import { describe } from "vitest";
import { fleetContract } from "../../contract/fleet.ts";
import { sandboxWorld } from "./contract-world.ts";

// Each test has an object of its own and mostly waits.
describe.concurrent("over the SDK", () => {
  fleetContract("real objects", sandboxWorld);
});
