import { storeContract } from "../../contract/store.ts";
import { memoryWorld } from "./memory-world.ts";

storeContract("in memory", () => Promise.resolve(memoryWorld()));
