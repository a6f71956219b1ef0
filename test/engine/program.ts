import { fileURLToPath } from "node:url";
import type { ContainerProgram } from "../../dev/engine/contract.ts";

export const PROGRAM: ContainerProgram = {
  command: [process.execPath, fileURLToPath(new URL("./program.mjs", import.meta.url))],
  env: { ROLE: "test" },
  ports: { 3000: "PORT", 8080: "PREVIEW_PORT" },
};
